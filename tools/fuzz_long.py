#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every fuzz target until it has had so many executions, and prints a table.

The targets of the preset `fuzz` have no sanitizers, so that they run several times faster. The inputs
that they find are kept in build/fuzz/corpus, and the sanitized target of the preset `asan`, if it was built, then runs
each of them once. Executions are counted in build/fuzz/executions.json, so that a run which was interrupted goes on where it
stopped.

Usage: fuzz_long.py [--executions N] [--seconds S] [--jobs N] [TARGET...]
"""

import argparse
import concurrent.futures
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
PIECE = 120  # seconds after which what was done is counted


class Failure(Exception):
    """A target that found something."""


def corpora(name):
    grown, given = FOLDER / "corpus" / name, ROOT / "fuzz" / "corpus" / name
    grown.mkdir(parents=True, exist_ok=True)
    return [str(folder) for folder in (grown, given) if folder.is_dir()]


def fuzz(name, seconds, executions):
    """Returns how many executions there were. Error: Failure, where one of them failed."""
    # The schedule by entropy and the search for leaks take longer than most targets; the sanitized run has them.
    command = [FOLDER / "bin" / name, "-entropic=0", "-timeout=10", "-rss_limit_mb=3000", "-print_final_stats=1",
               "-max_len=4096", f"-max_total_time={seconds}", f"-runs={executions}",
               f"-artifact_prefix={FOLDER}/{name}-", *corpora(name)]
    with open(FOLDER / f"{name}.log", "w+", encoding="utf-8", errors="replace") as log:
        status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=log).returncode
        log.seek(0)
        done = re.findall(r"^stat::number_of_executed_units: (\d+)", log.read(), re.MULTILINE)
    if status or not done:
        raise Failure(f"{name} failed ({status}): see {FOLDER}/{name}.log")
    return int(done[-1])


def sanitized(name):
    """Whether the sanitized target ran the inputs that were found."""
    program = ROOT / "build" / "asan" / "bin" / name
    if not program.exists():
        return "not built"
    command = [program, "-runs=0", "-timeout=60", "-rss_limit_mb=4000", f"-artifact_prefix={FOLDER}/{name}-", *corpora(name)]
    with open(FOLDER / f"{name}.asan.log", "w", encoding="utf-8") as log:
        status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=log).returncode
    if status:
        raise Failure(f"{name} failed under sanitizers ({status}): see {FOLDER}/{name}.asan.log")
    return "passed"


def run_target(name, arguments, counts, end, lock, failed):
    """Prints the target's row of the table, or what failed; the other targets then end after the piece that they run."""
    try:
        print(fuzz_pieces(name, arguments, counts, end, lock, failed), flush=True)
    except Failure as failure:
        failed.set()
        print(failure, file=sys.stderr, flush=True)


def fuzz_pieces(name, arguments, counts, end, lock, failed):
    """Returns the target's row of the table. Error: Failure."""
    speed = 0
    while (left := arguments.executions - counts.get(name, 0)) > 0 and time.monotonic() < end and not failed.is_set():
        started = time.monotonic()
        done = fuzz(name, max(1, min(PIECE, int(end - started))), left)
        speed = done / (time.monotonic() - started)
        with lock:
            counts[name] = counts.get(name, 0) + done
            KEPT.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
    state = sanitized(name) if speed and not failed.is_set() else "not run"
    return f"{name:<26}{counts.get(name, 0):>14,}{speed:>10,.0f}  {state}"


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
    counts = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    end = time.monotonic() + arguments.seconds
    lock, failed = threading.Lock(), threading.Event()
    print(f"{'target':<26}{'executions':>14}{'a second':>10}  inputs under sanitizers", flush=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        rows = [pool.submit(run_target, name, arguments, counts, end, lock, failed) for name in arguments.target or built]
        try:
            for row in rows:
                row.result()
        except BaseException:  # an interrupt, for example
            failed.set()
            raise
    if failed.is_set():
        sys.exit(1)


if __name__ == "__main__":
    main()
