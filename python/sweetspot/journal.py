"""Finished runs on disk, from which an interrupted sweep resumes."""

from __future__ import annotations

import hashlib
import os
import stat
import warnings
from functools import cache
from pathlib import Path

from . import _core


class JournalFile:
    """A journal with a line per finished run; a sweep does not repeat the runs in it.

    Raises:
        OSError: The file cannot be opened.
        ValueError: The path is not a file or not a journal, or the journal is from another version.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.file = open(path, "a+b", buffering=0)
        if not stat.S_ISREG(os.fstat(self.file.fileno()).st_mode):
            self.file.close()
            raise ValueError(f"{path}: it is a device or a pipe; name a file that may grow")
        self.file.seek(0)
        text = self.file.read().decode("utf-8", "replace")
        try:
            self.known = _core.Journal(text, identity())
        except ValueError as error:
            self.file.close()
            raise ValueError(f"{path}: {error}") from None
        # Remove a killed program's incomplete last line.
        self.file.truncate(self.known.whole)
        self.failed = False
        if self.known.whole == 0:
            self.write(_core.Journal.head(identity()))

    def get(
        self, scenario: _core.Scenario, engine: str, seed: int
    ) -> _core.Outcome | None:
        """The outcome of this run, if an earlier sweep has stored it."""
        return self.known.recall(scenario, engine, seed)

    def put(
        self, scenario: _core.Scenario, engine: str, seed: int, outcome: _core.Outcome
    ) -> None:
        """Stores a finished run. If the disk is full, it warns, and the sweep continues."""
        self.write(_core.Journal.entry(scenario, engine, seed, outcome))

    def write(self, line: str) -> None:
        if self.failed:
            return
        before = self.file.seek(0, os.SEEK_END)
        try:
            self._write_all(line.encode())
        except OSError as error:
            self.failed = True
            words = f"{self.path}: {error.strerror}; runs are no longer kept, make room"
            warnings.warn(words, stacklevel=2)
            # Remove the part of the line that fitted.
            self.file.truncate(before)

    def _write_all(self, line: bytes) -> None:
        while line:
            line = line[self.file.write(line) :]

    def close(self) -> None:
        """Closes the file."""
        self.file.close()


@cache
def identity() -> str:
    """This package's version and build, which, with scenario and seed, determine an outcome."""
    built = Path(_core.__file__).read_bytes()
    return f"{_core.__version__}+python.{hashlib.blake2b(built, digest_size=4).hexdigest()}"
