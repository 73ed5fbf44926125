#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when the loop in src/engine/step.cc and the table "One step" in ARCHITECTURE.md name other stages or another
order of stages. Usage: tools/check_architecture.py"""

import pathlib
import re
import sys

ROW = re.compile(r"^\| (\d+) (\w+) \|", re.MULTILINE)
CALL = re.compile(r"\b(\w+)_\.run\(")
MAX_LOOP_LINES = 60


def section(text, title):
    """The text of a section of a Markdown document, up to the next heading of its level."""
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def problems_of(document, code):
    rows = ROW.findall(section(document, "One step"))
    stages = CALL.findall(code)
    if [int(number) for number, _ in rows] != list(range(1, len(rows) + 1)):
        yield "ARCHITECTURE.md: the rows of the table are not numbered 1, 2, 3, ..."
    if not rows or [name for _, name in rows] != stages:
        yield f"the table has the stages {[name for _, name in rows]}, the loop {stages}"
    if len(code.splitlines()) > MAX_LOOP_LINES:
        yield f"step.cc: {len(code.splitlines())} lines, at most {MAX_LOOP_LINES}"


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    document = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    code = (root / "src" / "engine" / "step.cc").read_text(encoding="utf-8")
    problems = list(problems_of(document, code))
    for problem in problems:
        print(problem)
    print(f"check_architecture: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
