#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two commits: builds both aside, runs the same `outrider` command in turn, prints medians and the ratio.

    bench/compare.py main HEAD --runs 5 -- bench --shape llama-1b --weights q4 --rows 1,8,32 --runs 3

The command has to understand --json, which is added. Figures compared are named by --keys, or are for
`bench --rows` the milliseconds of every row count, or else plain and speculative tokens per second. Builds stay in
--work and are used again.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def build(commit, work, jobs):
    """Checks `commit` out below `work`, builds the program there and returns its path."""
    name = git("rev-parse", "--short=12", commit + "^{commit}")
    tree = work / name
    if not tree.exists():
        git("worktree", "add", "--detach", str(tree), name)
    output = tree / "build" / "compare"
    program = output / "bin" / "outrider"
    if not program.exists():
        print(f"building {commit} ({name})", file=sys.stderr)
        cache = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        subprocess.run(["cmake", "--preset", "release", "-B", output, "-DOUTRIDER_TESTS=OFF", *cache], cwd=tree,
                       check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["ninja", "-C", output, "--quiet", f"-j{jobs}", "outrider"], check=True,
                       env=os.environ | {"CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"})
    return program


def figures(result, keys):
    """Returns the figures of one run's JSON object by name."""
    if keys:
        return {key: float(result[key]) for key in keys}
    if result.get("bench") == "rows":
        return {f"{row['rows']} rows, ms": row["median_ms"] for row in result["rows"]}
    return {key: result[key] for key in ("plain_tokens_per_second", "speculative_tokens_per_second")}


def run(program, command, keys):
    done = subprocess.run([program, *command, "--json"], check=True, capture_output=True, text=True)
    return figures(json.loads(done.stdout), keys)


def summary(before, after):
    """Returns the lines of the table. Ratios are taken run by run, as runs close in time had the same conditions."""
    lines = [f"{'':<32} {'A':>10} {'B':>10} {'B / A':>8} {'spread':>15}"]
    for name in before[0]:
        a = [one[name] for one in before]
        b = [one[name] for one in after]
        ratios = sorted(y / x for x, y in zip(a, b))
        spread = f"{ratios[0]:.3f}..{ratios[-1]:.3f}"
        lines.append(f"{name:<32} {statistics.median(a):>10.3f} {statistics.median(b):>10.3f} "
                     f"{statistics.median(ratios):>8.3f} {spread:>15}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="commit A")
    parser.add_argument("after", help="commit B")
    parser.add_argument("--runs", type=int, default=5, help="runs of each, in turn [5]")
    parser.add_argument("--keys", type=lambda text: text.split(","), help="JSON keys to compare")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "compare", help="where builds are kept")
    parser.add_argument("--jobs", type=int, default=2, help="compiler processes [2]")
    parser.add_argument("command", nargs="+", help="arguments of outrider, after --")
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    programs = [build(commit, work, options.jobs) for commit in (options.before, options.after)]
    results = [[], []]
    for turn in range(options.runs):
        order = (0, 1) if turn % 2 == 0 else (1, 0)  # a drift of the machine's speed affects both sides alike
        for side in order:
            results[side].append(run(programs[side], options.command, options.keys))
    print(f"A {options.before}, B {options.after}, {options.runs} runs each in turn: outrider {' '.join(options.command)}")
    print("\n".join(summary(*results)))


if __name__ == "__main__":
    main()
