#!/usr/bin/env python3
"""Sets each constant of the controllers to half and to double its value, and prints which test notices.

    scripts/constants.py [--only NAME,...] [DIRECTORY ...]

Directories are those of crates/sizing/src; the default is sobas, model, driver and upload. The work
tree is not touched: tests run in a copy of its tracked files, whose build is kept for the next run.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = pathlib.Path("crates/sizing/src")
SCRATCH = pathlib.Path(tempfile.gettempdir()) / "sweetspot-constants"
# The tests that run a controller from these directories.
TESTS = [
    *("-p", "sweetspot-sizing", "-p", "sweetspot-control", "--lib"),
    *("--test", "contract", "--test", "sobas", "--test", "upload", "--test", "path_group"),
]
# Ten times the duration of all of these tests.
TIMEOUT_S = 600

ABSTRACT = """# The constants of the controllers

- **Question**: does a test notice when a constant of a controller has another value?
- **Method**: each constant is halved and doubled; the unit tests and four integration tests run until one fails.
- **Result**: the table names the test that fails. "Nothing" asks for a source, a derivation or a population in the comment.
- **Limitation**: no population is simulated. Values derived from other constants have no row.
- **Command**: `make constants`

The tests are the unit tests of `sweetspot-sizing` and `sweetspot-control`, and `contract`, `sobas`, `upload` and `path_group`.
"""

CONSTANT = re.compile(
    r"^ *(?:pub(?:\([a-z]+\))? )?const (?P<name>[A-Z0-9_]+): (?P<type>f64|u32|u64|usize|Duration|Bytes|Rate)"
    r" =\s*(?P<value>[^;]+);",
    re.MULTILINE,
)
# For a quantity's constructor, the constructor for its smallest unit and the number of these units in one of the
# former.
UNITS = {
    "Duration::from_nanos": ("Duration::from_nanos", 1),
    "Duration::from_micros": ("Duration::from_nanos", 1_000),
    "Duration::from_millis": ("Duration::from_nanos", 1_000_000),
    "Duration::from_secs": ("Duration::from_nanos", 1_000_000_000),
    "Bytes::new": ("Bytes::new", 1),
    "Rate::from_bits_per_second": ("Rate::from_bits_per_second", 1),
    "Rate::from_mbit_per_second": ("Rate::from_bits_per_second", 1_000_000),
}


def constants(directories):
    """Yields (file, match) of each numeric constant outside of tests."""
    for directory in directories:
        # From the copy, because the work tree may be edited during the run.
        for path in sorted((SCRATCH / "tree" / SOURCES / directory).rglob("*.rs")):
            text = path.read_text().split("#[cfg(test)]\nmod ")[0]
            for match in CONSTANT.finditer(text):
                yield path.relative_to(SCRATCH / "tree"), match


def scaled(match, numerator, denominator):
    """The constant's value times a ratio, in Rust."""
    kind, value = match["type"], " ".join(match["value"].split())
    if kind == "f64":
        return f"({value}) * {numerator}.0 / {denominator}.0"
    if kind in ("u32", "u64", "usize"):
        return f"({value}) * {numerator} / {denominator}"
    quantity = re.fullmatch(r"(\w+::\w+)\((.*)\)", value)
    if quantity is None or quantity[1] not in UNITS:
        sys.exit(f"{match['name']}: expected a constructor of {kind}, found {value}")
    smallest, units = UNITS[quantity[1]]
    return f"{smallest}(({quantity[2]}) * {units} * {numerator} / {denominator})"


def copy_sources():
    """Copies the work tree's tracked files; unchanged files keep their times, so they are not rebuilt."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    names = {name for name in tracked.stdout.decode().split("\0") if (ROOT / name).is_file()}
    for stale in (SCRATCH / "tree").rglob("*"):
        if stale.is_file() and str(stale.relative_to(SCRATCH / "tree")) not in names:
            stale.unlink()
    for name in names:
        source, target = ROOT / name, SCRATCH / "tree" / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def first_failure():
    """The name of a failing test, or None."""
    command = ["cargo", "test", "--quiet", "--target-dir", str(SCRATCH / "target"), *TESTS]
    try:
        run = subprocess.run(
            command, cwd=SCRATCH / "tree", capture_output=True, text=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return "tests do not end"
    if run.returncode == 0:
        return None
    failures = re.findall(r"^    (\S+)$", run.stdout.rpartition("failures:\n")[2], re.MULTILINE)
    return f"`{sorted(failures)[0]}`" if failures else "it does not compile"


def noticed_by(path, match, numerator, denominator):
    """The test that notices the constant times a ratio."""
    target = SCRATCH / "tree" / path
    text = target.read_text()
    start, end = match.span("value")
    target.write_text(text[:start] + scaled(match, numerator, denominator) + text[end:])
    try:
        return first_failure() or "nothing"
    finally:
        target.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="names of constants, separated by commas")
    parser.add_argument("directories", nargs="*", default=["sobas", "model", "driver", "upload"])
    arguments = parser.parse_args()
    only = set(filter(None, arguments.only.split(",")))
    copy_sources()
    failure = first_failure()
    if failure is not None:
        sys.exit(f"expected all tests to pass before anything is changed; failed: {failure}")
    found = [
        (path, match)
        for path, match in constants(arguments.directories)
        if not only or match["name"] in only
    ]
    print(ABSTRACT)
    print("| constant | file | value | at half | at double |")
    print("|---|---|---|---|---|", flush=True)
    noticed = 0
    for path, match in found:
        value = " ".join(match["value"].split())
        half, double = noticed_by(path, match, 1, 2), noticed_by(path, match, 2, 1)
        noticed += "nothing" not in (half, double)
        file = path.relative_to(SOURCES)
        print(f"| `{match['name']}` | {file} | `{value}` | {half} | {double} |", flush=True)
    print(f"\n**Result.** Tests notice {noticed} of {len(found)} constants both at half and at double.")


if __name__ == "__main__":
    main()
