#!/usr/bin/env python3
"""Runs docs/demo.sh on a terminal of its own and draws what came of it, as docs/demo.svg.

    docs/demo.py            draws it again
    docs/demo.py --check    fails if something else than what is drawn comes of it, ids, PIDs and times aside
"""

import fcntl
import html
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

HERE = Path(__file__).resolve().parent
COLUMNS = 104
CELL, LINE, MARGIN, BAR = 8.4, 20, 20, 34  # pixels
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341"}


def run(lines, home):
    """The bytes that a terminal of this width is given by a shell that shows its commands as it reads them."""
    master, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    script = "".join(f"printf '%s\\n' {quoted('$ ' + line)}\n{line}\n" for line in lines)
    shell = subprocess.Popen(["sh", "-c", script], stdin=side, stdout=side, stderr=side, env=environment, cwd=home)
    os.close(side)
    seen = b""
    while True:
        try:
            seen += os.read(master, 1 << 16)
        except OSError:  # the last of them has closed it
            break
    os.close(master)
    if shell.wait():
        sys.exit(f"docs/demo.sh ended with {shell.returncode}:\n{seen.decode()}")
    return seen.decode().replace("\r", "")


def quoted(word):
    return "'" + word.replace("'", "'\\''") + "'"


def draw(text):
    lines = text.rstrip("\n").split("\n")
    width, height = COLUMNS * CELL + 2 * MARGIN, len(lines) * LINE + BAR + MARGIN
    rows = []
    for at, line in enumerate(lines):
        y = BAR + (at + 1) * LINE - 4
        rows.append(f'<text x="{MARGIN}" y="{y}">{paint(line)}</text>')
    dots = "".join(
        f'<circle cx="{MARGIN + 18 * at}" cy="18" r="6" fill="{colour}"/>'
        for at, colour in enumerate(["#ff5f57", "#febc2e", "#28c840"])
    )
    body = "\n".join(rows)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">
<title>A terminal: outlive starts two jobs, waits for one, stops the other</title>
<rect width="{width:.0f}" height="{height}" rx="8" fill="#0d1117"/>{dots}
<g xml:space="preserve" fill="#c9d1d9" font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14">
{body}
</g>
</svg>
"""


def paint(line):
    if line.startswith("$ "):
        return f'<tspan fill="#8b949e">$</tspan> <tspan fill="#ffffff">{html.escape(line[2:], quote=False)}</tspan>'
    painted = ""
    for part in re.split(r"(\x1b\[\d*m)", line):
        code = re.fullmatch(r"\x1b\[(\d*)m", part)
        if not code:
            painted += html.escape(part, quote=False)
        elif code[1] in COLOURS:
            painted += f'<tspan fill="{COLOURS[code[1]]}">'
        else:
            painted += "</tspan>"
    return painted


def essence(svg):
    """What has to be the same: not ids, PIDs and times, nor the columns that they move."""
    text = html.unescape(re.sub(r"<[^>]*>", "", svg))
    text = re.sub(r"\b(?:[a-z][0-9]){3}[a-z]\b", "ID", text)
    text = re.sub(r"\b\d+(?:ms|m\d+s|s)\b", "TIME", text)
    return [re.sub(r"\b\d+\b(?= +TIME)", "PID", " ".join(line.split())) for line in text.splitlines() if line.strip()]


def main():
    lines = (HERE / "demo.sh").read_text().splitlines()
    with tempfile.TemporaryDirectory() as home:
        svg = draw(run(lines, home))
    picture = HERE / "demo.svg"
    if sys.argv[1:] != ["--check"]:
        picture.write_text(svg)
    elif essence(picture.read_text()) != essence(svg):
        sys.exit("docs/demo.svg is out of date (docs/demo.py draws it again)\n" + "\n".join(essence(svg)))


main()
