"""Types, examples and pictures of the package."""

import doctest
import importlib
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import sweetspot as ss


def python(*arguments: str, cwd: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_the_package_passes_its_type_check(root: pathlib.Path) -> None:
    pytest.importorskip("mypy")
    result = python("-m", "mypy", cwd=root)
    assert result.returncode == 0, result.stdout


def test_the_stubs_describe_the_native_module(root: pathlib.Path) -> None:
    pytest.importorskip("mypy")
    config = str(root / "pyproject.toml")
    result = python(
        "-m", "mypy.stubtest", "sweetspot._core", "--mypy-config-file", config, cwd=root / "python"
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", ["sweetspot", "sweetspot.units", "sweetspot.theory", "sweetspot.advise", "sweetspot.sockets"])
def test_documented_examples_print_the_documented_output(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", ["quickstart", "figure3"])
def test_the_notebooks_run_from_top_to_bottom(root: pathlib.Path, name: str) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    examples = root / "python" / "examples"
    notebook = nbformat.read(examples / f"{name}.ipynb", as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(examples)}}
    )
    client.execute()


def test_pictures_show_the_numbers_of_theory_and_sweeps(bare: ss.Scenario) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from sweetspot import plot

    ax = plot.rate_curve("50Mbit/s", "100ms", "313kB")
    x, y = ax.lines[0].get_data()
    assert np.max(y) == 50
    # The plateau is the sweet spot: from 625 kB to 938 kB.
    plateau = np.asarray(x)[np.asarray(y) == 50]
    step = float(x[1] - x[0])
    assert plateau.min() == pytest.approx(625, abs=step)
    assert plateau.max() == pytest.approx(938, abs=step)

    table = ss.sweep(
        bare, {"path.buffer": ["50pkt", "100pkt"], "transfer.0.sizing": ["max", "sobas"]}, seeds=2
    )
    ax = plot.sweep_curve(table, "path.buffer", by="transfer.0.sizing")
    # Groups differ in shape as well as in colour.
    lines = [container.lines[0] for container in ax.containers]
    assert len({line.get_marker() for line in lines}) == 2
    assert [line.get_color() for line in lines] == list(plot.COLOURS[:2])
    assert ax.get_ylabel() == "goodput, Mbit/s"
    assert ax.get_xlabel() == "path.buffer, packets"
    assert len(ax.containers) == 2
    assert list(lines[0].get_xdata()) == [50, 100]
    with pytest.raises(ValueError, match="draw it with by="):
        plot.sweep_curve(table, "transfer.0.sizing")


def test_axes_of_pictures_have_one_unit(bare: ss.Scenario) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from sweetspot import plot

    table = ss.sweep(bare, {"path.buffer": ["1MB", "400kB"]})
    line = plot.sweep_curve(table, "path.buffer").containers[0].lines[0]
    # 1 kB is 1000 B.
    assert list(line.get_xdata()) == [400_000, 1_000_000]
