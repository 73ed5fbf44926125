#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on links in documents that lead nowhere, and on documents named in sources that do not exist.

Usage: tools/check_links.py. Relative links and their anchors are checked; addresses on the network are not.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(r"(?<![\w/-])(?<!ggml's )(?:docs/[\w/]+\.md|ARCHITECTURE\.md|CONTRIBUTING\.md)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def tracked(*patterns):
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT,
                           check=True, capture_output=True, text=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def anchors(text):
    """The anchors of a document: its headings as GitHub names them, and explicit ids."""
    found = set(re.findall(r'<a id="([^"]+)"', text))
    for heading in re.findall(r"^#+ +(.*?) *$", FENCE.sub("", text), re.MULTILINE):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        number = 0
        while (name := slug if number == 0 else f"{slug}-{number}") in found:
            number += 1
        found.add(name)
    return found


def dead_links(path):
    text = path.read_text(encoding="utf-8")
    for target in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name) if name else path
        if not file.exists():
            yield f"{path.relative_to(ROOT)}: no file {target}"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{path.relative_to(ROOT)}: no heading {target}"


def missing_documents(path):
    for name in sorted(set(NAMED.findall(path.read_text(encoding="utf-8")))):
        if not (ROOT / name).exists():
            yield f"{path.relative_to(ROOT)}: no document {name}"


def main():
    documents = tracked("*.md")
    sources = tracked("*.h", "*.cc", "*.py", "*.sh", "*.js", "*.txt", "dev")
    problems = [problem for path in documents for problem in dead_links(path)]
    problems += [problem for path in sources for problem in missing_documents(path)]
    for problem in problems:
        print(problem)
    print(f"check_links: {len(documents)} documents, {len(sources)} sources, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
