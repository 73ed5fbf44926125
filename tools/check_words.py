#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on comments and documents that are hard to read: a pronoun in place of a noun ("those of", "that of"), a
sentence of more than 35 words, or a sentence without a subject. Pronouns may not be far more frequent than in other
projects. It also fails on titles of new commits that are not `area: verb object`, on names of methods in quotes
outside the table of methods, and on documents that are too long. Usage: tools/check_words.py [PATH...]   (with paths: only these, and no rates)"""

import ast
import pathlib
import re
import subprocess
import sys

MAX_SENTENCE_WORDS = 35
MAX_TITLE = 72
MAX_README_WORDS = 700
MAX_PAGE_WORDS = 2500
MAX_DOCS_WORDS = 35000
GENERATED_PAGES = ("docs/reference/options.md", "docs/reference/coming_from.md")
# Occurrences in 1,000 words of comments, and of documents, at most: the highest rates of four other code bases.
MAX_RATES = {"those": 0.24, "whose": 0.56, "alone": 0.1, "of its own": 0.05}
PRONOUN_OF = re.compile(r"(?<![\"`])\b(those|that) of\b", re.I)
# A sentence that begins with one of these words has no subject, or hides it. A question may.
NO_SUBJECT = re.compile(r"(Is|Are|Was|Were|Has|Had|Does|Did|Can|Could|Will|Would|Must|Should|May|Might|Also|Likewise|Of|"
                        r"What|Who|Whose|The same (?:for|of|with|as|in|on|but|where|when))\b(?!.*\?)")
# In documents, a verb before an article at the beginning of a sentence: "Reads the file."
BARE_VERB = re.compile(r"[A-Z][a-z]+s (the|a|an|its|every|each) (?!.*\?)")
SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[\"')*]* +(?=[\"'(\[*]*[A-Z0-9`])")
METHOD_TABLE = "include/outrider/method_rows.inc"
FOLDERS = ("src", "include", "tests", "bench", "fuzz", "examples", "tools", "python", "packaging", "cmake")
CODE_SUFFIXES = {".h", ".cc", ".inc"}
SCRIPT_SUFFIXES = {".py", ".sh", ".cmake"}
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINE_COMMENT = re.compile(r'((?:"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[^"\'/]|/(?!/))*)//+ ?(.*)')
HASH_COMMENT = re.compile(r'((?:"(?:\\.|[^"\\])*"|\'[^\']*\'|[^"\'#]|(?<=[^\s])#)*)#+ ?(.*)')
# A comment that begins so is not in the same paragraph as the line before: list items, indented lines.
BLOCK_START = re.compile(r"\s*([-*|]|\d+\.) |  |SPDX|NOLINT|!")
TITLE = re.compile(r"[a-z][\w./, -]*: [a-z]")


def split_line(line, marker=LINE_COMMENT):
    """The code and the comment of a line; the comment is None if there is none."""
    found = marker.match(line)
    return (found.group(1), found.group(2)) if found else (line, None)


def comments(lines, marker=LINE_COMMENT):
    """Yields (line number, text) of every comment; the lines of a paragraph or a list item are joined."""
    start, block = 0, []
    for number, line in enumerate(lines + [""], 1):
        code, comment = split_line(line, marker)
        is_whole_line = comment is not None and not code.strip()
        begins = not is_whole_line or not comment.strip() or BLOCK_START.match(comment)
        if block and begins:
            yield start, " ".join(block)
            block = []
        if is_whole_line and comment.strip() and not re.match("SPDX|NOLINT|!", comment):
            start = start if block else number
            block.append(comment.strip())
        elif comment is not None and not is_whole_line:
            yield number, comment.strip()


def script_comments(text, suffix):
    """Yields (line number, text) of the comments of a script; docstrings of Python are comments, too."""
    yield from comments(text.splitlines(), HASH_COMMENT)
    if suffix != ".py":
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            lines = ast.get_docstring(node).splitlines()
            yield from ((node.body[0].lineno, block) for _, block in comments([f"# {line}" for line in lines], HASH_COMMENT)
                        if not block.lower().startswith("usage"))


def paragraphs(lines):
    """Yields (line number, text) of the paragraphs, list items and table cells of a document, without code."""
    start, block, is_code = 0, [], False
    for number, line in enumerate(lines + [""], 1):
        is_fence = line.lstrip().startswith("```")
        is_code = is_code != is_fence
        begins = is_fence or not line.strip() or re.match(r"\s*(?:[-*#>]+ |\||\d+\. )", line) or line.startswith("    ")
        if block and (begins or is_code):
            yield start, re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "`code`", " ".join(block)))
            block = []
        if line.strip() and not is_fence and not is_code and not line.startswith("    "):
            start = start if block else number
            if line.lstrip().startswith("|"):
                yield from ((number, "| " + re.sub(r"`[^`]*`", "`code`", cell.strip())) for cell in line.split("|"))
            else:
                block.append(re.sub(r"^\s*([-*#>]+|\d+\.) ", "", line.strip()))


def sentences(text):
    return [sentence for sentence in SENTENCE_END.split(text) if sentence]


def words(sentence):
    return [word for word in sentence.split() if re.search(r"\w", word)]


def prose_problems(text, is_document):
    for sentence in sentences(text):
        if PRONOUN_OF.search(sentence):
            yield f"repeat the noun in place of '{PRONOUN_OF.search(sentence).group(0)}': {sentence}"
        if len(words(sentence)) > MAX_SENTENCE_WORDS:
            yield f"a sentence of {len(words(sentence))} words, at most {MAX_SENTENCE_WORDS}: {sentence}"
        if NO_SUBJECT.match(sentence) or (is_document and BARE_VERB.match(sentence)):
            yield f"a sentence without a subject: {sentence}"


def rate_problems(kind, texts):
    total = sum(len(words(text)) for text in texts)
    everything = "\n".join(texts)
    for word, limit in MAX_RATES.items():
        rate = 1000 * len(re.findall(rf"\b{word}\b", everything, re.I)) / total
        if rate > limit:
            yield f"{kind}: '{word}' {rate:.2f} times in 1,000 words, at most {limit}: repeat the noun"


def title_problems(root):
    """The titles of commits that main does not have."""
    log = subprocess.run(["git", "-C", str(root), "log", "--no-merges", "--format=%h %s", "main.."], capture_output=True,
                         text=True, check=False)
    for line in log.stdout.splitlines():
        title = line.split(" ", 1)[1]
        if len(title) > MAX_TITLE or not TITLE.match(title):
            yield f"commit {line}: the title is not 'area: verb object' of at most {MAX_TITLE} characters"


def length_problems(root):
    """Pages that programs write are looked up, not read: they may have any length. No reader sees comments."""
    lengths = {path.relative_to(root).as_posix(): len(words(HTML_COMMENT.sub("", path.read_text(encoding="utf-8"))))
               for path in [root / "README.md", *root.glob("docs/**/*.md")]}
    for name, length in sorted(lengths.items()):
        limit = MAX_README_WORDS if name == "README.md" else MAX_PAGE_WORDS
        if length > limit and name not in GENERATED_PAGES:
            yield f"{name}: {length} words, at most {limit}"
    total = sum(length for name, length in lengths.items() if name.startswith("docs/") and name not in GENERATED_PAGES)
    if total > MAX_DOCS_WORDS:
        yield f"docs: {total} words, at most {MAX_DOCS_WORDS}"


def code_problems(line, methods):
    code, _ = split_line(line)
    for literal in STRING.findall(code):
        if literal[1:-1] in methods:
            yield f"{literal}: only {METHOD_TABLE} names methods"


def prose(path):
    """Yields (line number, text) of the prose of a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return paragraphs(text.splitlines())
    if path.suffix in CODE_SUFFIXES:
        return comments(text.splitlines())
    return script_comments(text, path.suffix)


def files(root, chosen):
    """Yields (path, name) of the files with prose."""
    found = {path for folder in FOLDERS for path in (root / folder).rglob("*")
             if path.suffix in CODE_SUFFIXES | SCRIPT_SUFFIXES or path.name == "CMakeLists.txt"}
    for pattern in ("*.md", "docs/**/*.md", "bench/*.md", "models/**/*.md"):
        found.update(root.glob(pattern))
    for path in sorted(found):
        if not chosen or any(part in chosen for part in [path, *path.parents]):
            yield path, path.relative_to(root).as_posix()


def method_problems(path, name, methods):
    may_name = name == METHOD_TABLE or name.startswith(("tests/", "src/config/methods")) or path.stem.endswith("_test")
    if path.suffix in CODE_SUFFIXES and not may_name:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield from (f"{name}:{number}: {problem}" for problem in code_problems(line, methods))


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    chosen = {pathlib.Path(argument).resolve() for argument in sys.argv[1:]}
    table = (root / METHOD_TABLE).read_text(encoding="utf-8")
    methods = set(re.findall(r'\.name = "(\w+)"', table)) - {"None"}  # also a word of templates
    problems = [] if methods else [f"{METHOD_TABLE}: no names of methods found"]
    texts = {"comments": [], "documents": []}
    for path, name in files(root, chosen):
        problems += method_problems(path, name, methods)
        is_document = path.suffix == ".md"
        for number, text in prose(path):
            texts["documents" if is_document else "comments"].append(text)
            problems += [f"{name}:{number}: {problem}" for problem in prose_problems(text, is_document)]
    if not chosen:
        problems += [problem for kind, found in texts.items() for problem in rate_problems(kind, found)]
        problems += title_problems(root)
        problems += length_problems(root)
    for problem in problems:
        print(problem)
    print(f"check_words: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
