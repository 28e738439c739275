"""The page of results, and the diagnosis of captured connections."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Union, cast

from . import _core
from .tables import Diagnosis

Result = Union[str, "os.PathLike[str]", _core.Outcome, Sequence[_core.Outcome]]
"""A file of results, an outcome, or several."""

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"


def report(
    results: Mapping[str, Result] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str] = "report.html",
    svg: str | os.PathLike[str] | None = None,
    theme: Literal["screen", "print"] = "screen",
) -> list[Path]:
    """Charts results on one self-contained page, as ``sweetspot report`` does; it compares two results.

    Args:
        results: Files that the program wrote, or a dictionary of names and results: files, outcomes,
            lists of outcomes.
        out: File name of the page.
        svg: A directory for the pictures as SVG files, if given.
        theme: Colours: for a screen, or with a white background for paper.

    Returns:
        The written files, with the page first.

    Raises:
        OSError: A file cannot be read or written.
        ValueError: A file contains no result, or ``svg`` is given and there is nothing to draw.

    ::

        kernel = [run(scenario.replace({"transfer.0.sizing": "kernel"}), seed=s) for s in range(10)]
        sobas = [run(scenario.replace({"transfer.0.sizing": "sobas"}), seed=s) for s in range(10)]
        report({"kernel": kernel, "sobas": sobas})
    """
    if not isinstance(results, Mapping):
        results = {str(path): path for path in results}
    files = [(name, _content(result)) for name, result in results.items()]
    page, pictures = _core.report(files, theme == "print")
    if svg is not None and not pictures:
        raise ValueError("svg: these results have only tables, and no picture; give time series or sweeps")
    written = [Path(out)]
    written[0].write_text(page, encoding="utf-8")
    if svg is not None:
        directory = Path(svg)
        directory.mkdir(parents=True, exist_ok=True)
        for name, picture in pictures:
            (directory / name).write_text(picture, encoding="utf-8")
            written.append(directory / name)
    return written


def _content(result: Result) -> bytes:
    if isinstance(result, (str, os.PathLike)):
        return Path(result).read_bytes()
    outcomes = [result] if isinstance(result, _core.Outcome) else result
    return f"[{','.join(outcome.to_json() for outcome in outcomes)}]".encode()


def diagnose(capture: str | os.PathLike[str] | bytes, flows: int = 20) -> Diagnosis:
    """The limit of each connection in a capture, its cause and the fix: ``sweetspot diagnose``.

    Args:
        capture: A file from tcpdump or Wireshark (pcap or pcapng, plain or compressed with gzip), or its bytes.
        flows: Maximum number of reported flows; those with the most payload come first.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not a capture, or is compressed with zstd.
    """
    content = capture if isinstance(capture, bytes) else Path(capture).read_bytes()
    if content.startswith(ZSTD):
        raise ValueError("it is compressed by zstd; decompress it first (zstd -d)")
    if content.startswith(GZIP):
        content = gzip.decompress(content)
    return cast(Diagnosis, json.loads(_core.diagnose(content, flows)))
