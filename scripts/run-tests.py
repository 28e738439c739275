#!/usr/bin/env python3
"""Compiles the workspace's tests and runs them, two test programs at a time.

Usage: scripts/run-tests.py [CARGO OPTION...]      (which packages: --workspace without any)

Documentation tests come last. `cargo test` runs the same tests one program after the other.
"""

import subprocess
import sys

from compiled_tests import ROOT, compiled, failures


def main():
    options = sys.argv[1:] or ["--workspace"]
    failed = failures(compiled(*options))
    documentation = subprocess.run(["cargo", "test", "--locked", "--quiet", "--doc", *options], cwd=ROOT, check=False)
    if documentation.returncode != 0:
        failed.append("documentation tests")
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
