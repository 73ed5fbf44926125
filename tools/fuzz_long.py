#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every fuzz target until it has had so many executions, and prints a table.

The targets of the preset `fuzz` have no sanitizers, so that they run several times faster. The inputs
that they find are kept in build/fuzz/corpus, and the sanitized target of the preset `asan`, if it was built, then runs
each of them once. Executions are counted in build/fuzz/executions.json, so that a run which was interrupted goes on where it
stopped. A file fuzz/TARGET.options, as OSS-Fuzz reads it, sets options of one target.

Usage: fuzz_long.py [--executions N] [--seconds S] [--jobs N] [TARGET...]
"""

import argparse
import concurrent.futures
import configparser
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "fuzz"
KEPT = FOLDER / "executions.json"
PIECE = 600  # seconds after which what was done is counted
INTERRUPTED = 72  # libFuzzer's status after SIGINT


class Failure(Exception):
    """A target that found something."""


def corpora(name):
    grown, given = FOLDER / "corpus" / name, ROOT / "fuzz" / "corpus" / name
    grown.mkdir(parents=True, exist_ok=True)
    return [str(folder) for folder in (grown, given) if folder.is_dir()]


def options_of(name):
    """Returns the options of the target's own file, after the default that they replace."""
    file = configparser.ConfigParser()
    file.read(ROOT / "fuzz" / f"{name}.options", encoding="utf-8")
    own = file["libfuzzer"] if file.has_section("libfuzzer") else {}
    return [f"-{option}={value}" for option, value in {"max_len": "4096", **own}.items()]


def fuzz(name, seconds, executions):
    """Returns how many executions there were, and whether an interrupt ended them. Error: Failure, where one failed."""
    # The schedule by entropy and the search for leaks take longer than most targets; the sanitized run has them.
    command = [FOLDER / "bin" / name, "-entropic=0", "-timeout=10", "-rss_limit_mb=3000", "-print_final_stats=1",
               f"-max_total_time={seconds}", f"-runs={executions}", f"-artifact_prefix={FOLDER}/{name}-",
               *options_of(name), *corpora(name)]
    with open(FOLDER / f"{name}.log", "w+", encoding="utf-8", errors="replace") as log:
        status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=log).returncode
        log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))  # the server's log may have a gigabyte
        done = re.findall(r"^stat::number_of_executed_units: (\d+)", log.read(), re.MULTILINE)
    if status not in (0, INTERRUPTED) or not done:
        raise Failure(f"{name} failed ({status}): see {FOLDER}/{name}.log")
    return int(done[-1]), status == INTERRUPTED


def sanitized(name):
    """Whether the sanitized target ran the inputs that were found."""
    program = ROOT / "build" / "asan" / "bin" / name
    if not program.exists():
        return "not built"
    # No options of the target: inputs that are longer than its bound run whole here.
    command = [program, "-runs=0", "-timeout=60", "-rss_limit_mb=4000", f"-artifact_prefix={FOLDER}/{name}-", *corpora(name)]
    with open(FOLDER / f"{name}.asan.log", "w", encoding="utf-8") as log:
        status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=log).returncode
    if status == INTERRUPTED:
        return "interrupted"
    if status:
        raise Failure(f"{name} failed under sanitizers ({status}): see {FOLDER}/{name}.asan.log")
    return "passed"


class LongRun:
    """Several targets, each until it had `executions` in all or until `seconds` have passed."""

    def __init__(self, executions, seconds):
        self.executions = executions
        self.end = time.monotonic() + seconds
        self.counts = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
        self.lock = threading.Lock()  # of the counts
        self.stopped = threading.Event()  # the targets end after the piece that they run
        self.failed = False

    def run(self, name):
        """Prints the target's row of the table, or what failed."""
        try:
            print(self.row(name), flush=True)
        except Failure as failure:
            self.failed = True
            self.stopped.set()
            print(failure, file=sys.stderr, flush=True)

    def row(self, name):
        """Returns the target's row of the table. Error: Failure."""
        speed = 0
        while (left := self.executions - self.counts.get(name, 0)) > 0 and not self.is_over():
            started = time.monotonic()
            done, interrupted = fuzz(name, max(1, min(PIECE, int(self.end - started))), left)
            speed = done / (time.monotonic() - started)
            self.count(name, done)
            if interrupted:
                self.stopped.set()
        state = sanitized(name) if speed and not self.stopped.is_set() else "not run"
        return f"{name:<26}{self.counts.get(name, 0):>14,}{speed:>10,.0f}  {state}"

    def is_over(self):
        return self.stopped.is_set() or time.monotonic() >= self.end

    def count(self, name, done):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + done
            KEPT.write_text(json.dumps(self.counts, indent=2) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="*", help="without any, all")
    parser.add_argument("--executions", type=int, default=50_000_000, help="of each target, with those that were counted [%(default)s]")
    parser.add_argument("--seconds", type=int, default=1 << 30, help="for all targets together")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at once [the processors, %(default)s]")
    arguments = parser.parse_args()
    if arguments.jobs < 1:
        parser.error(f"expected at least one job, found {arguments.jobs}")
    built = sorted(path.name for path in (FOLDER / "bin").glob("fuzz_*"))
    for name in arguments.target:
        if name not in built:
            parser.error(f"no target {name!r} in {FOLDER}/bin")
    run = LongRun(arguments.executions, arguments.seconds)
    print(f"{'target':<26}{'executions':>14}{'a second':>10}  inputs under sanitizers", flush=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        try:
            for row in [pool.submit(run.run, name) for name in arguments.target or built]:
                row.result()
        except BaseException as failure:
            run.stopped.set()
            if not isinstance(failure, KeyboardInterrupt):
                raise
            print("interrupted: the same command goes on from here", file=sys.stderr)
    sys.exit(1 if run.failed else 130 if run.stopped.is_set() else 0)


if __name__ == "__main__":
    main()
