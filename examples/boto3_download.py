"""Downloads an object of an S3-style store with boto3; Sweetspot sizes the window of every connection.

python examples/boto3_download.py ENDPOINT BUCKET KEY FILE [SIZING]
"""

import sys

import boto3
from botocore import UNSIGNED
from botocore.config import Config

import sweetspot


def main(endpoint: str, bucket: str, key: str, path: str, sizing: str = "sobas:live") -> None:
    config = Config(signature_version=UNSIGNED, s3={"addressing_style": "path"}, proxies={})
    store = boto3.client("s3", endpoint_url=endpoint, region_name="local", config=config)
    # botocore has no public name for its connection pool.
    pools = store._endpoint.http_session._manager
    live = sweetspot.size_pools(pools, sizing=sizing)
    report = None
    body = store.get_object(Bucket=bucket, Key=key)["Body"]
    with open(path, "wb") as file:
        for block in body.iter_chunks(256 * 1024):
            file.write(block)
            report = live[0].report() or report if live else report
    store.close()
    if report:
        print(f"{report.phase}, limited by {report.limited_by}")


if __name__ == "__main__":
    main(*sys.argv[1:])
