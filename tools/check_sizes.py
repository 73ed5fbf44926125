#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on files, functions and preprocessor use beyond the limits of CONTRIBUTING.md, and on getenv outside config/.
Usage: tools/check_sizes.py"""

import pathlib
import re
import sys

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 100
MAX_CONDITIONALS_PER_1000_LINES = 2.0
FUNCTION_HEAD = re.compile(r"\)\s*(const)?\s*(noexcept)?\s*(override)?\s*(final)?\s*(->\s*[\w:<>,&*\s]+)?\{\s*$")


def function_lengths(lines):
    """Yields (first line, length) of blocks that open after a parameter list, outermost first; braces are matched."""
    depth, stack, pending = 0, [], ""
    for number, line in enumerate(lines, 1):
        code = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'', '""', line).split("//")[0]
        pending = (pending + " " + code.strip())[-400:]
        opens_function = bool(FUNCTION_HEAD.search(pending)) and not re.search(r"\b(if|for|while|switch|catch)\s*\([^{]*$",
                                                                             code)
        for position, char in enumerate(code):
            if char == "{":
                is_last = "{" not in code[position + 1:]
                stack.append((number, is_last and opens_function))
                depth += 1
            elif char == "}" and stack:
                start, is_function = stack.pop()
                depth -= 1
                if is_function:
                    yield start, number - start + 1
        if code.strip().endswith((";", "}", "{")):
            pending = ""


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    problems, conditionals, total = [], 0, 0
    for folder in ("src", "include", "tests", "fuzz", "bench", "examples"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".h", ".cc"}:
                continue
            name = path.relative_to(root)
            text = path.read_text(encoding="utf-8")
            lines = text.splitlines()
            if not text.startswith("// SPDX-License-Identifier: Apache-2.0"):
                problems.append(f"{name}: no SPDX line")
            if len(lines) > MAX_FILE_LINES:
                problems.append(f"{name}: {len(lines)} lines, at most {MAX_FILE_LINES}")
            for start, length in function_lengths(lines):
                if length > MAX_FUNCTION_LINES:
                    problems.append(f"{name}:{start}: function of {length} lines, at most {MAX_FUNCTION_LINES}")
            if "getenv" in text and not str(name).startswith("src/config/"):
                problems.append(f"{name}: only src/config/ reads the environment")
            if not str(name).startswith(("src/kernels", "src/device")):
                total += len(lines)
                conditionals += len(re.findall(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b", text, re.MULTILINE))
    density = 1000 * conditionals / max(total, 1)
    if density > MAX_CONDITIONALS_PER_1000_LINES:
        problems.append(f"{density:.1f} preprocessor conditionals per 1000 lines, at most "
                        f"{MAX_CONDITIONALS_PER_1000_LINES}")
    for problem in problems:
        print(problem)
    print(f"check_sizes: {len(problems)} problems, {density:.1f} conditionals per 1000 lines")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
