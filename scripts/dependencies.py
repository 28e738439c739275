#!/usr/bin/env python3
"""Writes docs/dev/dependencies.md: what the program links directly, from cargo's metadata and the reasons in Cargo.toml.

Usage: scripts/dependencies.py [PROGRAM | --check]

PROGRAM is the installed binary (target/dist/sweetspot), whose size and day the page then has; without it they stay as they are.
--check fails if the page is not the one of today's Cargo.toml.
"""

import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from sbom import FEATURES, PROGRAM, compiled

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/dev/dependencies.md"
TARGET = "x86_64-unknown-linux-gnu"
SIZE = re.compile(r"^The stripped program .*$", re.M)


def reasons() -> dict[str, str]:
    """The comment after each dependency in the root manifest."""
    return dict(re.findall(r"^([\w-]+) = .*?\s# (.+)$", (ROOT / "Cargo.toml").read_text(), re.M))


def table() -> str:
    """A row for each external crate that one of the program's own crates depends on directly."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--features", FEATURES]
    command += ["--filter-platform", TARGET]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout)
    names = {package["id"]: package["name"] for package in metadata["packages"]}
    own = set(metadata["workspace_members"])
    crates = compiled(metadata)
    users: dict[str, list[str]] = {}
    for crate in own & crates.keys():
        for needed in crates[crate]:
            if needed not in own:
                user = "cli" if names[crate] == PROGRAM else names[crate].removeprefix(f"{PROGRAM}-")
                users.setdefault(names[needed], []).append(user)
    why = reasons()
    missing = sorted(users.keys() - why.keys())
    if missing:
        sys.exit(f"Cargo.toml: no reason behind {', '.join(missing)}; add a comment to its line")
    rows = [f"| {name} | {why[name]} | {', '.join(sorted(users[name]))} |\n" for name in sorted(users)]
    linked = len(crates.keys() - own)
    return (
        f"The program's own crates name {len(rows)} crates of others, which bring {linked - len(rows)} more:\n\n"
        "| crate | reason | used by |\n|---|---|---|\n" + "".join(rows)
    )


def size(program: str) -> str:
    """The sentence about the size of this binary."""
    day = datetime.datetime.fromtimestamp(pathlib.Path(program).stat().st_mtime, datetime.timezone.utc).date()
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "-o", stripped.name, program], check=True)
        size = pathlib.Path(stripped.name).stat().st_size
    return f"The stripped program (`make install`, x86-64) has {size / 1e6:.1f} MB, built on {day}."


def main() -> None:
    if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    earlier = PAGE.read_text() if PAGE.exists() else ""
    kept = SIZE.search(earlier)
    check = sys.argv[1:] == ["--check"]
    if not check and len(sys.argv) == 2:
        measured = size(sys.argv[1])
    elif kept:
        measured = kept[0]
    else:
        sys.exit(f"{PAGE.relative_to(ROOT)} has no size yet: name the program, target/dist/sweetspot")
    text = (
        "# Dependencies of the program\n\n"
        "Written by `scripts/dependencies.py` from cargo's metadata for Linux and the reasons in the root `Cargo.toml`; `make doc`\n"
        "checks it. `scripts/sbom.py` lists every crate with its version.\n\n"
        f"{measured}\n\n{table()}"
    )
    if not check:
        PAGE.write_text(text)
    elif text != earlier:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not the page of today's Cargo.toml: run scripts/dependencies.py")


if __name__ == "__main__":
    main()
