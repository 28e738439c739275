#!/usr/bin/env python3
"""Compiles the workspace's tests and runs two test programs at a time: most of their time they wait for real connections.

Usage: scripts/run-tests.py [CARGO OPTION...]      (which packages: --workspace without any)

Prints a line for each program that passes, and the whole output of each that fails. Documentation tests come last.
`cargo test` runs the same tests one program after the other.
"""

import concurrent.futures
import os
import subprocess
import sys
import time

from compiled_tests import ROOT, compiled, environment

AT_ONCE = 2


def run(test):
    """The exit code of a test program, its output, and how long it took."""
    directory, _, executable = test
    begun = time.monotonic()
    ran = subprocess.run(
        [executable],
        cwd=directory,
        env=environment(directory),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return test, ran.returncode, ran.stdout, time.monotonic() - begun


def summary(output):
    """What libtest says at its end."""
    results = [line for line in output.splitlines() if line.startswith("test result:")]
    return results[-1].removeprefix("test result: ").split("; 0 measured")[0] if results else "no result"


def main():
    options = sys.argv[1:] or ["--workspace"]
    failed = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, test) for test in compiled(*options)]):
            (_, source, _), code, output, seconds = done.result()
            name = os.path.relpath(source, ROOT)
            if code != 0:
                failed.append(name)
                print(f"\n{name} failed (exit code {code}):\n{output}", flush=True)
            else:
                print(f"{name}: {summary(output)} in {seconds:.1f} s", flush=True)
    documentation = subprocess.run(["cargo", "test", "--locked", "--quiet", "--doc", *options], cwd=ROOT, check=False)
    if documentation.returncode != 0:
        failed.append("documentation tests")
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
