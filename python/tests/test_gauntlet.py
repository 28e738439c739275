import pathlib
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import sweetspot as ss


def short(**changes: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = dict(seed=3, paths=3, seeds=2, duration="1s")
    return ss.gauntlet(**(arguments | dict(executor=ThreadPoolExecutor(2)) | changes))


def test_a_gauntlet_is_the_same_on_every_executor() -> None:
    assert short() == short(executor=None)


def test_the_null_comes_first_and_every_path_is_compared() -> None:
    report = short(paths=range(5, 8))
    assert [judged["sizing"] for judged in report["variants"]] == ["null", "sobas"]
    for judged in report["variants"]:
        assert [path["path"] for path in judged["paths"]] == [5, 6, 7]


def test_a_killed_gauntlet_resumes_where_it_stopped(tmp_path: pathlib.Path) -> None:
    journal = tmp_path / "g.journal"
    finished: list[int] = []
    first = short(journal=journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:10]) + lines[10][:20])
    again = short(journal=journal, progress=lambda done, runs: finished.append(done))
    assert again == first
    # Three paths, three variants and two seeds; nine runs were stored.
    assert len(finished) == 18 - 9


def test_fixed_congestion_controls_stay() -> None:
    texts: list[str] = []

    class Recording(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            texts.append(args[0][1])
            return super().submit(fn, *args, **kwargs)

    for fixed in (False, True):
        texts.clear()
        short(executor=Recording(2), congestion_fixed=fixed)
        # The runs of the kernel, the null variant and sobas on three paths with two seeds; runs
        # with the kernel's sizing do not set `congestion_fixed`.
        assert len(texts) == 3 * 3 * 2
        written = [text for text in texts if "congestion_fixed = true" in text]
        assert len(written) == (3 * 2 if fixed else 0)


def test_an_unknown_population_or_congestion_control_is_named() -> None:
    with pytest.raises(ValueError, match="unknown population short; known are drawn"):
        short(population="short")
    with pytest.raises(ValueError, match="cubik"):
        short(congestions=["cubik"])
