#!/usr/bin/env python3
"""Runs the tests that depend on other programs again, with all optional tools hidden (scripts/without-tools.py).

Usage: scripts/test-without-tools.py [CARGO OPTION...]      (which packages: --workspace without any)

Runs the tests that `make test` compiled. Prints one line and succeeds if there is nothing to hide, or no way to hide it.
"""

import json
import os
import re
import subprocess
import sys

from compiled_tests import ROOT, compiled, failures

HIDE = os.path.join(ROOT, "scripts/without-tools.py")
CANNOT = 3
# A test that may use an optional tool starts a program, or is skipped.
DEPENDS = re.compile(r"Command::new|sweetspot_testing")


def sources(path):
    """A test's files: all files beside its main.rs, or its only file."""
    if os.path.basename(path) != "main.rs":
        return [path]
    found = os.walk(os.path.dirname(path))
    return [os.path.join(place, name) for place, _, names in found for name in names if name.endswith(".rs")]


def depends(path):
    for source in sources(path):
        with open(source, encoding="utf-8") as file:
            if DEPENDS.search(file.read()):
                return True
    return False


def chosen():
    tests = compiled(*(sys.argv[1:] or ["--workspace"]))
    return [test for test in sorted(tests, key=lambda test: test[1]) if is_integration(test) and depends(test[1])]


def is_integration(test):
    directory, source, _ = test
    return os.path.relpath(source, directory).startswith("tests" + os.sep)


def run(tests):
    """Runs the tests inside the namespace; fails if one of them fails."""
    failed = failures(tests)
    if failed:
        sys.exit("failed without optional tools: " + ", ".join(failed))


def main():
    if sys.argv[1:] == ["--inside"]:
        return run(json.load(sys.stdin))
    listed = subprocess.run([HIDE, "--list"], stdout=subprocess.PIPE, text=True, check=False)
    if listed.returncode != 0:
        return None if listed.returncode == CANNOT else listed.returncode
    if not listed.stdout.split():
        print("no optional tool is here: the ordinary run of the tests was the one without")
        return None
    tests = json.dumps(chosen())
    again = [HIDE, sys.executable, os.path.abspath(__file__), "--inside"]
    return subprocess.run(again, input=tests, text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
