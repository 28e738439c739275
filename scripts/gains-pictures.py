#!/usr/bin/env python3
"""Draws the bar charts of docs/results/gains.md and of README from the tables in gains.md and stages.md, so that no number is written twice.

Usage: scripts/gains-pictures.py [--check]      (--check: fail if a picture is not the one of today's tables)
"""

import html
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = "docs/results/gains.md"
STAGES = "docs/results/stages.md"
FOLDER = "docs/pictures"
# A chart: its title, the section of SOURCE (or another page and its section), the column of the table there, and the rows to draw (an empty
# list means all).
FILES = ("4 GB over loopback, seconds", "Files at memory speed", 1, ["sweetspot copy", "scp -r", "rsync -a over ssh"])
ALL_FILES = ("4 GB over loopback, after a login by ssh, seconds", "Files at memory speed", 1, [])
RETRANSMITTED = (
    "Segments retransmitted, 200 MB over a long path",
    "A transfer over a path with a short buffer",
    2,
    ["Sweetspot, cubic", "kernel, cubic", "kernel, bbr"],
)
ANSWERS = ("Answers during a download, 99 %, ms", "A calm path during a download", 4, [])
QUEUE = ("Queue during a download, ms", "A calm path during a download", 2, [])
LIMITS = ("Flows with the right limit named, % of all", "Diagnosis", 1, [])
OTHERS = ("Cases beside CUBIC in which the others lose, of 6", "Beside other flows", 4, ["Sweetspot beside CUBIC", "BBR beside CUBIC"])
SENDER = ("Sender: CPU seconds per GB", (STAGES, "Sender"), 1, [])
RECEIVER = ("Receiver: CPU seconds per GB", (STAGES, "Receiver"), 1, [])
PICTURES = {
    "stages.svg": [SENDER, RECEIVER],
    "gains.svg": [FILES, RETRANSMITTED, ANSWERS],
    "gains-files.svg": [ALL_FILES],
    "gains-download.svg": [ANSWERS, QUEUE],
    "gains-others.svg": [OTHERS],
    "gains-diagnosis.svg": [LIMITS],
}
WIDTH, RIGHT = 360, 316
LETTER = {True: 7.2, False: 5.6}  # mean width of a letter, bold and not
STYLE = """\
text{font-family:system-ui,"Segoe UI",Roboto,"Liberation Sans","DejaVu Sans",sans-serif;font-size:11px;fill:#5f5f5a}\
.title,.own{fill:#1c1c1a;font-weight:600}.paper{fill:#ffffff}rect.other{fill:#7fb3d3}rect.own{fill:#1c1c1a}\
@media(prefers-color-scheme:dark){text{fill:#a2a29c}.title,.own{fill:#ecece8}.paper{fill:#16171a}rect.other{fill:#2f6d94}rect.own{fill:#ecece8}}"""


def rows(source, section):
    """The first table of a section, indexed by its rows' first cells; a row of Sweetspot itself is in bold."""
    with open(os.path.join(ROOT, source), encoding="utf-8") as file:
        text = file.read()
    body = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not body:
        sys.exit(f'{source}: no section "{section}"')
    found = {}
    for line in re.findall(r"^\|(.*)\|$", body[1], re.M):
        cells = [cell.strip() for cell in line.split("|")]
        found[cells[0].replace("*", "").replace("`", "")] = (cells[0].startswith("**"), cells)
    return found


def number(cell):
    """The number at the start of a cell; for "335 of 340", the percentage."""
    numbers = [float(each.replace(",", "")) for each in re.findall(r"[\d,]*\d(?:\.\d+)?", cell)]
    return numbers[0] * 100 / numbers[1] if " of " in cell else numbers[0]


def bars(chart):
    title, section, column, names = chart
    source, section = section if isinstance(section, tuple) else (SOURCE, section)
    table = rows(source, section)
    missing = [name for name in names if name not in table]
    if missing:
        sys.exit(f'{source}, "{section}": no row {missing[0]}')
    drawn = []
    for name, (own, cells) in list(table.items())[2:]:
        if not names or name in names:
            drawn.append((own, name, number(cells[column])))
    if names:
        drawn.sort(key=lambda bar: names.index(bar[1]))
    return title, drawn


def draw(charts):
    svg, top = "", 0
    left = 12 + max(LETTER[own] * len(name) for _, drawn in charts for own, name, _ in drawn)
    for title, drawn in charts:
        svg += f'<text class="title" x="4" y="{top + 16}">{html.escape(title)}</text>'
        top += 24
        longest = max(value for _, _, value in drawn)
        for own, name, value in drawn:
            kind, thickness = ("own", 14) if own else ("other", 9)
            length = max((RIGHT - left) * value / longest, 1)
            digits = 0 if value == round(value) or value >= 100 else 2 if longest < 2 else 1
            shown = f"{value:.{digits}f}"
            svg += (
                f'<text class="{kind}" x="{left - 6:.1f}" y="{top + 11}" text-anchor="end">{html.escape(name)}</text>'
                f'<rect class="{kind}" x="{left:.1f}" y="{top + 7 - thickness / 2:.1f}" width="{length:.1f}" height="{thickness}"/>'
                f'<text class="{kind}" x="{left + length + 5:.1f}" y="{top + 11}">{shown}</text>'
            )
            top += 18
        top += 8
    title = "; ".join(title for title, _ in charts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="bars" width="{WIDTH * 2}" viewBox="0 0 {WIDTH} {top}" role="img">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
        f'<rect class="paper" width="{WIDTH}" height="{top}"/>{svg}</svg>\n'
    )


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    for name, charts in PICTURES.items():
        path = os.path.join(ROOT, FOLDER, name)
        svg = draw([bars(chart) for chart in charts])
        if sys.argv[1:]:
            with open(path, encoding="utf-8") as file:
                if file.read() != svg:
                    sys.exit(f"{FOLDER}/{name} does not show today's tables: scripts/gains-pictures.py")
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(svg)


if __name__ == "__main__":
    main()
