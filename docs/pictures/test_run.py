#!/usr/bin/env python3
"""Draws test_run.svg: a terminal with a run of the tests of examples/orders.

    test_run.py          runs the tests, and draws what they print
    test_run.py --check  runs them, and fails if the picture shows other tests or another result

The picture has a background of its own, so that it is legible on light and on dark pages.
"""

import re
import subprocess
import sys
from html import escape, unescape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = Path(__file__).with_name("test_run.svg")
COMMAND = ["cargo", "test", "-p", "tablesdk-examples", "--example", "orders"]

SIZE = 14
ADVANCE = 0.602 * SIZE
LINE = 21
MARGIN = 20
BAR = 36
COLOURS = {"back": "#161b22", "bar": "#21262d", "edge": "#444c56", "text": "#d1d7e0", "dim": "#9198a1", "good": "#56d364"}
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"


def run():
    """The lines on standard output: those of the test harness, without the compiler's."""
    done = subprocess.run([*COMMAND[:2], "--locked", *COMMAND[2:]], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0:
        sys.exit("\n".join([*lines, f"error: {' '.join(COMMAND)} failed"]))
    return lines


def spans(line):
    """Pieces of a line, each with its colour."""
    if line.startswith("$ "):
        return [("$ ", "dim"), (line[2:], "text")]
    for result in (" ... ok", "test result: ok."):
        if result in line:
            before, after = line.split("ok", 1) if result.startswith("test") else line.rsplit("ok", 1)
            return [(before, "text"), ("ok", "good"), (after, "text")]
    return [(line, "text")]


def draw(lines):
    width = round(2 * MARGIN + ADVANCE * max(map(len, lines)))
    height = BAR + MARGIN + LINE * len(lines)
    passed = sum(line.endswith("... ok") for line in lines)
    c = COLOURS
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>{escape(' '.join(COMMAND))}: {passed} tests pass</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="{c["back"]}" stroke="{c["edge"]}"/>',
        f'<path d="M1 {BAR}V9a8 8 0 0 1 8-8H{width - 9}a8 8 0 0 1 8 8V{BAR}z" fill="{c["bar"]}"/>',
    ]
    out += [f'<circle cx="{x}" cy="{BAR / 2:g}" r="5.5" fill="{c["edge"]}"/>' for x in (22, 42, 62)]
    out.append(f'<g font-family="{FONT}" font-size="{SIZE}" xml:space="preserve">')
    for row, line in enumerate(lines):
        y = BAR + MARGIN + LINE * row + 8
        column = 0
        # Each piece has its place and width: the columns do not depend on the font.
        for text, colour in spans(line):
            if text.strip():
                x, length = MARGIN + column * ADVANCE, len(text) * ADVANCE
                shown = escape(text).replace(" ", "\u00a0")
                out.append(f'<text x="{x:.1f}" y="{y}" textLength="{length:.1f}" fill="{c[colour]}">{shown}</text>')
            column += len(text)
    out += ["</g>", "</svg>"]
    return "\n".join(out) + "\n"


def shown(picture):
    """The text of a picture, line by line."""
    lines = {}
    for y, text in re.findall(r'<text x="[^"]*" y="(\d+)"[^>]*>([^<]*)</text>', picture):
        lines[y] = lines.get(y, "") + unescape(text).replace("\u00a0", " ")
    return lines.values()


def facts(lines):
    """The lines without the time that the run took, in no order: tests end in any."""
    return sorted(re.sub(r"finished in .*", "", line) for line in lines if line.strip())


def main():
    lines = [f"$ {' '.join(COMMAND)}", *run()]
    if sys.argv[1:] == ["--check"]:
        if facts(shown(PICTURE.read_text())) != facts(lines):
            sys.exit(f"error: {PICTURE.relative_to(ROOT)} shows another run; docs/pictures/test_run.py draws it anew")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PICTURE.write_text(draw(lines))


if __name__ == "__main__":
    main()
