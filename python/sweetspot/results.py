"""The page of results, and what limits a captured connection."""

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
    """Draws results on one self-contained page, as ``sweetspot report`` does; two are compared.

    Args:
        results: Files that the program wrote, or names with what they stand for: files, outcomes, lists
            of outcomes.
        out: The page.
        svg: A directory into which every picture is written, too.
        theme: Colours: for a screen, or white for paper.

    Returns:
        The files that were written, the page first.

    Raises:
        OSError: A file cannot be read or written.
        ValueError: A file is no result; or pictures are asked for and there is nothing to draw.

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
    """What limits the connections of a capture, why, and what to do about it: ``sweetspot diagnose``.

    Args:
        capture: A file of tcpdump or Wireshark (pcap or pcapng, compressed by gzip or not), or its bytes.
        flows: The most flows that are told of, those with most payload.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no capture, or compressed by zstd.
    """
    content = capture if isinstance(capture, bytes) else Path(capture).read_bytes()
    if content.startswith(ZSTD):
        raise ValueError("it is compressed by zstd; decompress it first (zstd -d)")
    if content.startswith(GZIP):
        content = gzip.decompress(content)
    return cast(Diagnosis, json.loads(_core.diagnose(content, flows)))
