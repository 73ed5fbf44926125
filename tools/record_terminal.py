#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a terminal in which commands run, as an animated SVG from a real run. Needs the package pyte.

Usage: tools/record_terminal.py FILE.svg COMMAND... [--width COLUMNS] [--pause SECONDS]

Every COMMAND is a line for a shell. The picture shows what the commands wrote, when they wrote it; only pauses longer than
--pause are cut to it. It plays once and then stays at the end. Error: a command fails.
"""

import argparse
import os
import pathlib
import pty
import select
import subprocess
import sys
import time
from xml.sax.saxutils import escape

import pyte

ROWS = 200  # of the screen that is kept; the picture is as high as what was written
STEP = 0.05  # seconds; what comes within them is one change
PROMPT = "$ "
CHARACTER, LINE, MARGIN = 8.43, 20, 16  # pixels
STYLE = """
  rect { fill: #0d1117 }
  text { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 14px; fill: #f0f6fc;
         white-space: pre }
  .typed { fill: #79c0ff }
"""


class Recording:
    """The lines of the screen, each version with the time at which it begins, or None for its end."""

    def __init__(self, width):
        self.screen = pyte.Screen(width, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.versions = [[] for _ in range(ROWS)]  # of each line: (time, text, whether it was typed)
        self.typed = set()
        self.time = 0.0

    def write(self, data):
        self.stream.feed(data)
        for y, text in enumerate(self.screen.display):
            text = text.rstrip()
            if (self.versions[y][-1][1] if self.versions[y] else "") != text:
                self.versions[y].append((self.time, text, y in self.typed))

    def type(self, command):
        self.typed.add(self.screen.cursor.y)
        for end in range(0, len(command) + 1, 3):
            self.write(b"\r" + (PROMPT + command[:end]).encode())
            self.time += STEP
        self.write(b"\r" + (PROMPT + command).encode() + b"\r\n")
        self.time += 0.3

    def run(self, command, pause):
        master, slave = pty.openpty()
        environment = dict(os.environ, TERM="xterm", COLUMNS=str(self.screen.columns), LINES=str(ROWS))
        process = subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                                   env=environment)
        os.close(slave)
        last = time.monotonic()
        while True:
            data = b""
            if select.select([master], [], [], STEP)[0]:
                try:
                    data = os.read(master, 65536)
                except OSError:  # the other end is closed
                    break
                if not data:
                    break
            if data:
                now = time.monotonic()
                self.time += min(max(now - last, STEP), pause)
                last = now
                self.write(data)
        os.close(master)
        if process.wait() != 0:
            sys.exit(f"{command}: exit status {process.returncode}")
        self.time += 1.0


def svg(recording):
    rows = max((y + 1 for y, versions in enumerate(recording.versions) if versions), default=1)
    width = round(recording.screen.columns * CHARACTER + 2 * MARGIN)
    height = rows * LINE + 2 * MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
             f"<style>{STYLE}</style>", f'<rect width="{width}" height="{height}" rx="8"/>']
    for y, versions in enumerate(recording.versions):
        for i, (begin, text, typed) in enumerate(versions):
            if not text:
                continue
            end = versions[i + 1][0] if i + 1 < len(versions) else None
            hide = "" if end is None else f'<set attributeName="visibility" to="hidden" begin="{end:.2f}s"/>'
            kind = ' class="typed"' if typed else ""
            parts.append(f'<text x="{MARGIN}" y="{MARGIN + (y + 0.75) * LINE:g}"{kind} visibility="hidden">{escape(text)}'
                         f'<set attributeName="visibility" to="visible" begin="{begin:.2f}s"/>{hide}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("commands", nargs="+")
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--pause", type=float, default=1.5)
    arguments = parser.parse_args()
    recording = Recording(arguments.width)
    for command in arguments.commands:
        recording.type(command)
        recording.run(command, arguments.pause)
    arguments.file.write_text(svg(recording), encoding="utf-8")


if __name__ == "__main__":
    main()
