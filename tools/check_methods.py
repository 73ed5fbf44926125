#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a file names a drafting method that is not its own. The method table (src/config), the registry of drafters and a
method's own files name methods; all others read columns of the table or ask the drafter. Method::kNone, which stands for
plain decoding, may be named anywhere. Usage: tools/check_methods.py"""

import pathlib
import re
import sys

NAME = re.compile(r"(?<!::)\bMethod::k(\w+)")
ROW = re.compile(r"^OUTRIDER_METHOD\(k(\w+),", re.MULTILINE)
ALLOWED = {
    "config": "the method table, and the keys and defaults of each method",
    "drafters/registry.cc": "the line of each method",
    "cli/commands/contenders.cc": "the comparison of drafters chooses the methods that it compares",
    "training": "every recipe trains for a method, and evaluation compares with some",
}


def owner(path, keys):
    """Whether the file, given by its path from src/, is one of a method's own."""
    if path.parts[0] == "drafters":
        return len(path.parts) > 2 or path.stem in keys
    return path.parts[0] == "draft_heads" and any(part.startswith(key) for part in path.parts[1:] for key in keys)


def problems_of(root):
    rows = (root / "include" / "outrider" / "method_rows.inc").read_text(encoding="utf-8")
    keys = [name.lower() for name in ROW.findall(rows)]
    for file in sorted((root / "src").rglob("*")):
        path = file.relative_to(root / "src")
        if file.suffix not in {".h", ".cc"} or file.stem.endswith("_test") or owner(path, keys):
            continue
        if any(path.is_relative_to(allowed) for allowed in ALLOWED):
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            for name in NAME.findall(line.split("//")[0]):
                if name.lower() in keys and name != "None":
                    yield f"{file.relative_to(root)}:{number}: names Method::k{name}; read a column of config/methods.h"


def main() -> int:
    problems = list(problems_of(pathlib.Path(__file__).resolve().parent.parent))
    for problem in problems:
        print(problem)
    print(f"check_methods: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
