#!/usr/bin/env python3
"""Records commands in terminals and draws them as one animated SVG, light and dark, without JavaScript.

Usage: scripts/record-terminal.py OUT.svg COLUMNS SECONDS PANE...
  PANE  ROWS:START:COMMAND, a terminal below the previous one, in which COMMAND is typed after START seconds

Each command runs in a pseudoterminal of its own. The recording ends SECONDS after the first command did, and then ends the others. Where nothing moves (prefers-reduced-motion, print), the picture shows the last moment. scripts/record-readme.sh makes
README's recording.
"""

import fcntl
import html
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

WIDTH, HEIGHT, MARGIN = 7.25, 15, 8  # of a character, of a line, and around a terminal
FRAME = 0.25  # seconds between two pictures at least
TYPING = 0.6  # seconds for a command to be typed
SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[ -~]|[\x00-\x1f]|[^\x00-\x1f]+")
PLAIN = ("", False, False)  # colour, bold, reversed


class Screen:
    """The part of a terminal that the recorded programs use."""

    def __init__(self, columns, rows):
        self.columns, self.rows, self.saved = columns, rows, None
        self.clear()

    def clear(self):
        self.cells = [[(" ", PLAIN)] * self.columns for _ in range(self.rows)]
        self.row = self.column = 0
        self.look = PLAIN

    def feed(self, text):
        for found in SEQUENCE.finditer(text):
            part = found[0]
            if found[2]:
                self.control(found[1], found[2])
            elif part == "\n":
                self.down()
            elif part == "\r":
                self.column = 0
            elif part == "\b":
                self.column = max(self.column - 1, 0)
            elif part >= " ":
                for letter in part:
                    self.put(letter)

    def put(self, letter):
        if self.column == self.columns:
            self.column = 0
            self.down()
        self.cells[self.row][self.column] = (letter, self.look)
        self.column += 1

    def down(self):
        self.row += 1
        if self.row == self.rows:
            self.cells = [*self.cells[1:], [(" ", PLAIN)] * self.columns]
            self.row -= 1

    def control(self, parameters, final):
        numbers = [int(number) if number.isdigit() else 0 for number in parameters.split(";")]
        first = max(numbers[0], 1)
        if final in "Hf":
            self.row = min(first, self.rows) - 1
            self.column = min(max(numbers[1], 1) if len(numbers) > 1 else 1, self.columns) - 1
        elif final == "A":
            self.row = max(self.row - first, 0)
        elif final == "B":
            self.row = min(self.row + first, self.rows - 1)
        elif final == "C":
            self.column = min(self.column + first, self.columns - 1)
        elif final == "D":
            self.column = max(self.column - first, 0)
        elif final == "G":
            self.column = min(first, self.columns) - 1
        elif final == "K":
            self.erase(self.row, *{0: (self.column, self.columns), 1: (0, self.column + 1)}.get(numbers[0], (0, self.columns)))
        elif final == "J":
            self.erase(self.row, self.column if numbers[0] == 0 else 0, self.columns)
            for row in range(self.row + 1 if numbers[0] == 0 else 0, self.rows):
                self.erase(row, 0, self.columns)
        elif final == "m":
            self.style(numbers)
        elif parameters == "?1049":
            if final == "h":
                self.saved = (self.cells, self.row, self.column)
                self.clear()
            elif self.saved:
                self.cells, self.row, self.column = self.saved
                self.look = PLAIN

    def erase(self, row, begin, end):
        for column in range(begin, min(end, self.columns)):
            self.cells[row][column] = (" ", PLAIN)

    def style(self, numbers):
        colour, bold, turned = self.look
        numbers = iter(numbers)
        for number in numbers:
            if number == 0:
                colour, bold, turned = PLAIN
            elif number == 1:
                bold = True
            elif number == 22:
                bold = False
            elif number in (7, 27):
                turned = number == 7
            elif 30 <= number <= 37 or 90 <= number <= 97:
                colour = f"k{number % 10}"
            elif number == 38 and next(numbers, 0) == 5:
                colour = f"k{next(numbers, 7) % 8}"
            elif number in (2, 39):
                colour = "k8" if number == 2 else ""
        self.look = (colour, bold, turned)

    def lines(self):
        """Each row as runs of equal appearance: column, appearance, text."""
        for row in self.cells:
            runs = []
            for column, (letter, look) in enumerate(row):
                if runs and runs[-1][1] == look:
                    runs[-1][2] += letter
                else:
                    runs.append([column, look, letter])
            yield tuple((column, look, text) for column, look, text in runs if text.strip() or look[2])


class Pane:
    def __init__(self, description, columns):
        rows, start, self.command = description.split(":", 2)
        self.screen = Screen(columns, int(rows))
        self.start, self.child, self.terminal, self.typed = float(start), None, None, 0
        self.screen.feed("$ ")

    def advance(self, now):
        """Types the text due by `now`, and runs commands that are complete."""
        share = min(max((now - self.start) / TYPING, 0), 1)
        due = int(share * len(self.command))
        self.screen.feed(self.command[self.typed : due])
        self.typed = due
        if share == 1 and self.child is None:
            self.screen.feed("\r\n")
            self.child, self.terminal = pty.fork()
            if self.child == 0:
                size = struct.pack("HHHH", self.screen.rows, self.screen.columns, 0, 0)
                fcntl.ioctl(0, termios.TIOCSWINSZ, size)
                os.environ["TERM"] = "xterm-256color"
                os.execvp("sh", ["sh", "-c", "exec " + self.command])

    def read(self):
        try:
            self.screen.feed(os.read(self.terminal, 65536).decode(errors="replace"))
        except OSError:
            os.close(self.terminal)
            self.terminal = None
            self.screen.feed("$ ")

    def end(self):
        if self.terminal is not None:
            os.kill(self.child, signal.SIGTERM)
        if self.child:
            os.waitpid(self.child, 0)


def record(panes, seconds):
    """The frames of all panes: a time and each pane's lines."""
    begin, frames, end = time.monotonic(), [], None
    while end is None or now < end:
        now = time.monotonic() - begin
        for pane in panes:
            pane.advance(now)
        open_ones = {pane.terminal: pane for pane in panes if pane.terminal is not None}
        for ready in select.select(list(open_ones), [], [], 0.03)[0]:
            open_ones[ready].read()
        if end is None and panes[0].child and panes[0].terminal is None:
            end = now + seconds
        picture = [tuple(pane.screen.lines()) for pane in panes]
        if not frames or (picture != frames[-1][1] and now - frames[-1][0] >= FRAME):
            frames.append((now, picture))
    frames.append((now, [tuple(pane.screen.lines()) for pane in panes]))
    for pane in panes:
        pane.end()
    return frames


STYLE = """\
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12px;white-space:pre;fill:#1c1c1a}
.paper{fill:#ffffff}.edge{fill:none;stroke:#cfcfc8}.bar{fill:#1c1c1a}.bold{font-weight:700}text.turned{fill:#ffffff}
.k1{fill:#b3261e}.k2{fill:#00704a}.k3{fill:#8a5a00}.k4{fill:#0072b2}.k5{fill:#8e3b76}.k6{fill:#00697a}.k8{fill:#5f5f5a}.k0{fill:#5f5f5a}
@media(prefers-color-scheme:dark){text{fill:#ecece8}.paper{fill:#16171a}.edge{stroke:#41444b}.bar{fill:#ecece8}text.turned{fill:#16171a}
.k1{fill:#ff8a80}.k2{fill:#5fd3a0}.k3{fill:#e6b450}.k4{fill:#6fb7e8}.k5{fill:#d992b8}.k6{fill:#62cfd9}.k8{fill:#a2a29c}.k0{fill:#a2a29c}}
"""


def draw_line(runs):
    svg = ""
    for column, (colour, bold, turned), text in runs:
        x, width = MARGIN + column * WIDTH, len(text) * WIDTH
        if turned:
            svg += f'<rect class="bar" x="{x:.1f}" y="-11.5" width="{width:.1f}" height="{HEIGHT}"/>'
        classes = " ".join(filter(None, ["turned" if turned else colour, "bold" if bold else ""]))
        kept = text.rstrip()
        if kept:
            kind = f' class="{classes}"' if classes else ""
            svg += f'<text{kind} x="{x:.1f}" textLength="{len(kept) * WIDTH:.1f}">{html.escape(kept)}</text>'
    return svg


def draw(frames, panes, columns, title):
    """The frames side by side on a strip, over which a window of one frame's size moves."""
    width = round(2 * MARGIN + columns * WIDTH)
    tops, height = [], 0
    for pane in panes:
        tops.append(height)
        height += pane.screen.rows * HEIGHT + 2 * MARGIN
    drawn, film = {}, ""
    for number, (_, picture) in enumerate(frames):
        film += f'<g transform="translate({number * width})">'
        for top, lines in zip(tops, picture):
            for row, runs in enumerate(lines):
                if runs:
                    name = drawn.setdefault(runs, f"l{len(drawn)}")
                    film += f'<use href="#{name}" y="{top + MARGIN + row * HEIGHT + 11.5}"/>'
        film += "</g>"
    lasts = frames[-1][0] + 3
    steps = "".join(f"{at / lasts * 100:.2f}%{{transform:translateX({-number * width}px)}}" for number, (at, _) in enumerate(frames))
    still = f"transform:translateX({-(len(frames) - 1) * width}px)"
    style = (
        f"{STYLE}@keyframes run{{{steps}100%{{{still}}}}}.film{{{still};animation:run {lasts:.1f}s step-end infinite}}"
        "@media(prefers-reduced-motion:reduce){.film{animation:none}}@media print{.film{animation:none}}"
    )
    definitions = "".join(f'<g id="{name}">{draw_line(runs)}</g>' for runs, name in drawn.items())
    edges = "".join(
        f'<rect class="edge" x="0.5" y="{top + 0.5}" width="{width - 1}" height="{pane.screen.rows * HEIGHT + 2 * MARGIN - 1}" rx="4"/>'
        for pane, top in zip(panes, tops)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="terminal" width="{width * 1.5:.0f}" viewBox="0 0 {width} {height}" role="img">'
        f"<title>{html.escape(title)}</title><style>{style}</style><defs>{definitions}</defs>"
        f'<rect class="paper" width="{width}" height="{height}" rx="4"/>{edges}<g class="film">{film}</g></svg>\n'
    )


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    out, columns, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    panes = [Pane(description, columns) for description in sys.argv[4:]]
    frames = record(panes, seconds)
    title = "A recording of " + ", and of ".join(pane.command for pane in panes)
    with open(out, "w", encoding="utf-8") as file:
        file.write(draw(frames, panes, columns, title))


if __name__ == "__main__":
    main()
