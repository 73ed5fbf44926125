#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on folders, files, functions and preprocessor use beyond the limits of CONTRIBUTING.md, and on getenv outside
config/. Usage: tools/check_sizes.py"""

import collections
import pathlib
import re
import sys

MAX_FOLDER_FILES = 40
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70  # more than 25 only where control flow then stays in the parent
MAX_FUNCTION_LINES_P95 = 25  # 95 of 100 functions are no longer
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


def check_file(name, text, lengths):
    """Yields what is wrong with one file; adds the lengths of its functions to `lengths`."""
    lines = text.splitlines()
    if not text.startswith("// SPDX-License-Identifier: Apache-2.0"):
        yield f"{name}: no SPDX line"
    if len(lines) > MAX_FILE_LINES:
        yield f"{name}: {len(lines)} lines, at most {MAX_FILE_LINES}"
    for start, length in function_lengths(lines):
        lengths.append(length)
        if length > MAX_FUNCTION_LINES:
            yield f"{name}:{start}: function of {length} lines, at most {MAX_FUNCTION_LINES}"
    if "getenv" in text and not name.startswith("src/config/"):
        yield f"{name}: only src/config/ reads the environment"


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    problems, lengths, folders, conditionals, total = [], [], collections.Counter(), 0, 0
    for folder in ("src", "include", "tests", "fuzz", "bench", "examples"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".h", ".cc"}:
                continue
            name = path.relative_to(root).as_posix()
            text = path.read_text(encoding="utf-8")
            problems += check_file(name, text, lengths)
            folders[path.parent.relative_to(root).as_posix()] += 1
            if not name.startswith(("src/kernels", "src/platform")):
                total += text.count("\n")
                conditionals += len(re.findall(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b", text, re.MULTILINE))
    problems += [f"{folder}: {count} files, at most {MAX_FOLDER_FILES}" for folder, count in folders.items()
                 if count > MAX_FOLDER_FILES]
    p95 = sorted(lengths)[len(lengths) * 95 // 100]
    if p95 > MAX_FUNCTION_LINES_P95:
        problems.append(f"95 of 100 functions have up to {p95} lines, at most {MAX_FUNCTION_LINES_P95}")
    density = 1000 * conditionals / total
    if density > MAX_CONDITIONALS_PER_1000_LINES:
        problems.append(f"{density:.1f} preprocessor conditionals per 1000 lines, at most "
                        f"{MAX_CONDITIONALS_PER_1000_LINES}")
    for problem in problems:
        print(problem)
    print(f"check_sizes: {len(problems)} problems, functions of up to {p95} lines (95 of 100), "
          f"{density:.1f} conditionals per 1000 lines")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
