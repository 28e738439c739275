"""The test programs that cargo compiled."""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Every run draws the same cases, so that a change fails on its own faults only. `make properties` draws others.
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
