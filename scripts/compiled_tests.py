"""The test programs that cargo compiled, and how to run them."""

import concurrent.futures
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Tests spend most of their time waiting for real connections.
AT_ONCE = 2
# Every run draws the same cases, so that a change fails only because of its own faults. `make properties` draws
# other cases.
PROPERTY_SEED = "20261127"


def environment(directory):
    """The environment of a test program of the package in `directory`, as cargo sets it."""
    return {"PROPTEST_RNG_SEED": PROPERTY_SEED, **os.environ, "CARGO_MANIFEST_DIR": directory}


def compiled(*options):
    """(package directory, source, executable) of each test program; exits if they do not compile."""
    cargo = ["cargo", "test", "--locked", "--no-run", "--message-format=json-render-diagnostics", *options]
    built = subprocess.run(cargo, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        sys.exit(built.returncode)
    tests = []
    for message in map(json.loads, built.stdout.splitlines()):
        if message.get("profile", {}).get("test") and message.get("executable"):
            directory = os.path.dirname(message["manifest_path"])
            tests.append((directory, message["target"]["src_path"], message["executable"]))
    return sorted(tests)


def run(test):
    """The exit code of a test program, its output, and its duration."""
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
    """The summary that libtest prints at the end."""
    results = [line for line in output.splitlines() if line.startswith("test result:")]
    return results[-1].removeprefix("test result: ").split("; 0 measured")[0] if results else "no result"


def failures(tests):
    """Runs the test programs, two at a time. Prints a line for each that passes, and the whole output of each that fails. Returns the names
    of those that failed."""
    failed = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, test) for test in tests]):
            (_, source, _), code, output, seconds = done.result()
            name = os.path.relpath(source, ROOT)
            if code != 0:
                failed.append(name)
                print(f"\n{name} failed (exit code {code}):\n{output}", flush=True)
            else:
                print(f"{name}: {summary(output)} in {seconds:.1f} s", flush=True)
    return failed
