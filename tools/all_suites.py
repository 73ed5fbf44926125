#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every suite of the project and prints a table of results and times.

A suite that has passed on this commit is not run again, so that a run which was interrupted goes on where it stopped.
Results lie in build/all/COMMIT.json, outputs in build/all/SUITE.log.

Usage: all_suites.py [--again] [SUITE...]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = 77  # a command's exit status where something it needs is not there

SUITES = {
    "test": ["./dev", "test"],
    "bench": ["./dev", "bench"],
    "asan": ["./dev", "sanitize", "asan"],
    "ubsan": ["./dev", "sanitize", "ubsan"],
    "fuzz": ["./dev", "fuzz", "60"],
    "coverage": ["./dev", "coverage"],
    "tsan": ["./dev", "sanitize", "tsan"],
    "package": ["./dev", "package"],
    "python": ["./dev", "python"],
    "trainer": ["./dev", "trainer", "test"],
    "docs": ["./dev", "docs", "run"],
    "site": ["./dev", "site"],
    "arm": ["tools/check_arm.sh"],
    "slow": ["./dev", "slow"],
}


def state_of_tree():
    """The commit, or None where files differ from it: results of such a tree are not kept."""
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return None if changed.strip() else commit.strip()


def run(name, folder):
    started = time.monotonic()
    with open(folder / f"{name}.log", "w", encoding="utf-8") as log:
        status = subprocess.run(SUITES[name], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT).returncode
    result = {0: "passed", SKIPPED: "skipped"}.get(status, f"failed ({status})")
    return {"result": result, "minutes": round((time.monotonic() - started) / 60, 1)}


def table(results):
    lines = [f"{'suite':<10}{'result':<14}{'minutes':>8}"]
    for name in SUITES:
        outcome = results.get(name, {"result": "not run", "minutes": ""})
        lines.append(f"{name:<10}{outcome['result']:<14}{outcome['minutes']:>8}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", nargs="*", help=f"of {', '.join(SUITES)}; without any, all")
    parser.add_argument("--again", action="store_true", help="also suites that have passed on this commit")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.suite if name not in SUITES]
    if unknown:
        parser.error(f"no suite {unknown[0]!r}; choose from {', '.join(SUITES)}")
    folder = ROOT / "build" / "all"
    folder.mkdir(parents=True, exist_ok=True)
    commit = state_of_tree()
    kept = folder / f"{commit}.json"
    results = json.loads(kept.read_text(encoding="utf-8")) if commit and kept.exists() else {}
    for name in arguments.suite or SUITES:
        if results.get(name, {}).get("result") == "passed" and not arguments.again:
            continue
        print(f"== {name}: {' '.join(SUITES[name])}", file=sys.stderr, flush=True)
        results[name] = run(name, folder)
        if commit:
            kept.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        print(f"   {results[name]['result']}, {results[name]['minutes']} minutes", file=sys.stderr, flush=True)
    print(table(results))
    return 0 if all(results.get(name, {}).get("result") in ("passed", "skipped") for name in arguments.suite or SUITES) else 1


if __name__ == "__main__":
    sys.exit(main())
