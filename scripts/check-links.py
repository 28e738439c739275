#!/usr/bin/env python3
"""Checks that relative links of all Markdown files lead to an existing file and heading. Prints nothing if all do."""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(file: pathlib.Path) -> set[str]:
    """The headings of a file, as the anchors that forges and mdBook make of them."""
    found = set()
    for line in file.read_text().splitlines():
        if line.startswith("#"):
            heading = re.sub(r"[`*_]", "", line.lstrip("#").strip().lower())
            found.add(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-"))
    return found


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))


def broken(file: pathlib.Path) -> list[str]:
    complaints = []
    for target in LINK.findall(without_code(file.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        leads_to = (file.parent / path).resolve() if path else file
        if not leads_to.exists():
            complaints.append(f"{file.relative_to(ROOT)}: {target}: there is no such file")
        elif anchor and leads_to.suffix == ".md" and anchor not in anchors(leads_to):
            complaints.append(f"{file.relative_to(ROOT)}: {target}: there is no such heading")
    return complaints


def documents():
    """All Markdown files of the project. Without git, or in a copy without its history, all files that are not built."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    if shutil.which("git"):
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if listed.returncode == 0:
            return listed.stdout.splitlines()
    return [str(f.relative_to(ROOT)) for f in ROOT.rglob("*.md") if "target" not in f.parts]


names = documents()
# Links in notes that a program inserts into a document elsewhere are relative to that document.
names = [name for name in names if (ROOT / name).is_file() and not name.startswith("crates/research/data/")]
complaints = [line for name in names for line in broken(ROOT / name)]
print("\n".join(complaints), end="\n" if complaints else "")
sys.exit(1 if complaints else 0)
