#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on comments and documents in words that readers of the field do not know, on old names in code, and on method
names in quotes outside the table of methods. Usage: tools/check_words.py"""

import pathlib
import re
import sys

# Sentences that begin so have no subject, or hide it.
OPENINGS = re.compile(r"(Of|What|The same|Who|Whose|Whatever|Likewise|So)\b(?!.*\?$)")
# In comments and documents: the expression, and the word to use.
WORDS = [
    (r"\blaws?\b", "distribution"),
    (r"\b(a|an|the|each|every|all|one|first|second|later|next|last|other) (try|tries)\b", "proposal"),
    (r"\b(a|an|the|each|every|one|per|of) strips?\b", "panel"),
    (r"\bpurses?\b", "budget"),
    (r"\bmemory nodes?\b", "NUMA node"),
    (r"\bmade-up\b", "fake"),
    (r"\bnews\b", "delta"),
    (r"\bun?settle[sd]?\b|\bsettling\b", "resolve"),
    (r"\bunited\b|\bunite[s]?\b", "merge"),
    (r"\b(catch|catches|caught|catching)(es)? up\b", "prefill"),
    (r"\buncollected\b", "pending"),
    (r"\bas a word\b", "name the thing itself"),
]
# In code: the expression, and the name to use.
NAMES = [
    (r"\bmade_up_\w+|\bMadeUp\w+", "fake_"),
    (r"\b(Law|LawBuilder|LawSettings)\b|\blaws?_\b|\w+_laws?\b", "Distribution, LogitsProcessor"),
    (r"\bcatch_up\w*|\bcatches_up\b", "prefill_tokens"),
    (r"\bk(Most|Least)[A-Z]\w*", "kMax..., kMin..."),
    (r"\bleast_probability\b", "min_probability"),
    (r"\bWorthwhileNodes\b", "TreePruner"),
    (r"\bLikeliestNodes\b", "TopNodes"),
    (r"\bDraftAccounts\b|\bpurse\w*\b", "SpeculationBudget"),
    (r"\bDraftExperience\b", "DraftStats"),
    (r"\bDraftOutlook\b", "DraftForecast"),
    (r"\bChoiceNews\b", "ChoiceDelta"),
    (r"\bLetter\b", "Command"),
    (r"\bStepLoad\b", "BatchShape"),
    (r"\bRequestHead\b", "RequestHeader"),
    (r"\b(Weight|Input)Form\b|\bkStrips?\w*\b", "WeightLayout, InputLayout, panel"),
    (r"\bis_(shape|method)_open\b", "shape_unset, method_unset"),
    (r"\bsettled?\(", "resolve()"),
    (r"\bunited\w*", "merge"),
    (r"\buncollected\w*", "pending_logprobs"),
    (r"\bfacts\(\)", "fingerprint()"),
]
METHOD_TABLE = "src/config/methods.cc"
CODE_SUFFIXES = {".h", ".cc", ".inc"}
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
LINE_COMMENT = re.compile(r'((?:"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[^"\'/]|/(?!/))*)//+ ?(.*)')


def split_line(line):
    """The code and the comment of a line; the comment is None if there is none."""
    found = LINE_COMMENT.match(line)
    return (found.group(1), found.group(2)) if found else (line, None)


def comments(lines):
    """Yields (line number, text) of every comment; the lines of a block are joined."""
    start, block = 0, []
    for number, line in enumerate(lines, 1):
        code, comment = split_line(line)
        if comment is not None and not code.strip():
            start = start if block else number
            block.append(comment)
            continue
        if block:
            yield start, " ".join(block)
            block = []
        if comment is not None:
            yield number, comment
    if block:
        yield start, " ".join(block)


def paragraphs(lines):
    """Yields (line number, text) of the paragraphs, list items and table rows of a document, without code."""
    start, block, is_code = 0, [], False
    for number, line in enumerate(lines + [""], 1):
        is_fence = line.lstrip().startswith("```")
        is_code = is_code != is_fence
        begins = is_fence or not line.strip() or re.match(r"\s*([-*|#>]|\d+\.)", line) or line.startswith("    ")
        if block and (begins or is_code):
            yield start, re.sub(r"`[^`]*`", "`code`", " ".join(block))
            block = []
        if line.strip() and not is_fence and not is_code and not line.startswith("    "):
            start = start if block else number
            block.append(re.sub(r"^\s*([-*#>]+|\d+\.) ", "", line.strip()))


def prose_problems(text):
    for sentence in re.split(r"(?<=[.!?]) +(?=[A-Z])", text):
        found = OPENINGS.match(sentence)
        if found:
            yield f"a sentence begins with '{found.group(1)}': {sentence[:60]}"
    for expression, instead in WORDS:
        found = re.search(expression, text)
        if found:
            yield f"'{found.group(0)}': say {instead}"


def code_problems(line, methods):
    code, _ = split_line(line)
    for expression, instead in NAMES:
        found = re.search(expression, STRING.sub('""', code))
        if found:
            yield f"'{found.group(0)}': the name is {instead}"
    for literal in STRING.findall(code):
        if literal[1:-1] in methods:
            yield f"{literal}: only {METHOD_TABLE} names methods"


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    problems = []
    table = root / METHOD_TABLE
    methods = set(re.findall(r'\.name = "(\w+)"', table.read_text(encoding="utf-8"))) if table.is_file() else set()
    methods.discard("None")  # also a word of templates
    if not methods:
        problems.append(f"{METHOD_TABLE}: no names of methods found")
    for folder in ("src", "include", "tests", "bench", "fuzz", "examples"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in CODE_SUFFIXES:
                continue
            name = path.relative_to(root).as_posix()
            lines = path.read_text(encoding="utf-8").splitlines()
            may_name = folder == "tests" or name.startswith("src/config/methods") or path.stem.endswith("_test")
            for number, line in enumerate(lines, 1):
                problems += [f"{name}:{number}: {problem}" for problem in code_problems(line, set() if may_name else methods)]
            for number, text in comments(lines):
                problems += [f"{name}:{number}: {problem}" for problem in prose_problems(text)]
    for path in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "bench").glob("*.md")]):
        for number, text in paragraphs(path.read_text(encoding="utf-8").splitlines()):
            problems += [f"{path.relative_to(root)}:{number}: {problem}" for problem in prose_problems(text)]
    for problem in problems:
        print(problem)
    print(f"check_words: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
