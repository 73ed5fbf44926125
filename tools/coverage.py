#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints which share of the product's lines and branches the tests of build/coverage ran, by folder of src/.

Programs of the preset coverage add their counts to build/coverage/counts. Tests, generated files and headers of the system
do not count. Kernels do not either: counters would make them ten times as slow. --missed lists the functions that no test
ran. --html DIR writes every file with the count of each line.

Usage: coverage.py [--missed] [--html DIR]
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "coverage"
NO_PRODUCT = r"(_test(_data)?\.(cc|h)|/tests/|/build/|/examples/|^/usr/)"
KINDS = ("functions", "lines", "branches")


def merged_counts():
    """The file with the counts of all runs."""
    counts = sorted((BUILD / "counts").glob("*.profraw"))
    if not counts:
        sys.exit("coverage: no counts in build/coverage/counts; run ./dev coverage")
    merged = BUILD / "merged.profdata"
    subprocess.run(["llvm-profdata-14", "merge", "--sparse", "--failure-mode=all", "-o", merged, *counts], check=True)
    return merged


def programs():
    """Arguments of llvm-cov for every program and library that has counters."""
    files = [path for path in sorted((BUILD / "bin").iterdir()) if path.is_file() and path.suffix in ("", ".so")]
    return [files[0], *[argument for path in files[1:] for argument in ("--object", path)]]


def llvm_cov(command, merged, *options):
    return ["llvm-cov-14", command, f"--instr-profile={merged}", f"--ignore-filename-regex={NO_PRODUCT}", *options, *programs()]


def summary(merged):
    """By folder of src/, for each of KINDS: how many there are and how many ran."""
    text = subprocess.run(llvm_cov("export", merged, "--summary-only"), check=True, capture_output=True, text=True).stdout
    folders = collections.defaultdict(lambda: {kind: [0, 0] for kind in KINDS})
    for file in json.loads(text)["data"][0]["files"]:
        path = pathlib.Path(file["filename"])
        if not path.is_relative_to(ROOT / "src"):
            continue
        folder = path.relative_to(ROOT / "src").parts[0]
        for kind in KINDS:
            for name in (folder, "all"):
                folders[name][kind][0] += file["summary"][kind]["count"]
                folders[name][kind][1] += file["summary"][kind]["covered"]
    return folders


def missed_functions(merged):
    """Place, lines and name of every function that no test ran. Functions of a template at one place are one function."""
    text = subprocess.run(llvm_cov("export", merged, "--skip-expansions"), check=True, capture_output=True, text=True).stdout
    runs, names = collections.Counter(), {}
    for function in json.loads(text)["data"][0]["functions"]:
        path = pathlib.Path(function["filenames"][0])
        if path.is_relative_to(ROOT / "src") and not re.search(NO_PRODUCT, str(path)):
            first, _, last = function["regions"][0][:3]
            place = (str(path.relative_to(ROOT)), first, last)
            runs[place] += function["count"]
            names[place] = function["name"].split(":")[-1]  # of a local function after its file
    missed = sorted(place for place, count in runs.items() if count == 0)
    mangled = "\n".join(names[place] for place in missed)
    plain = subprocess.run(["c++filt"], input=mangled, check=True, capture_output=True, text=True).stdout.splitlines()
    return [f"{path}:{first} {last - first + 1} {name}" for (path, first, last), name in zip(missed, plain)]


def table(folders):
    lines = [f"{'folder':<16}" + "".join(f"{kind:>22}" for kind in KINDS)]
    for name in [*sorted(set(folders) - {"all"}), "all"]:
        cells = "".join(f"{covered:>8} of {count:>6} {100 * covered / max(1, count):>3.0f}%" for count, covered in folders[name].values())
        lines.append(f"{name:<16}{cells}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missed", action="store_true", help="list the functions that no test ran")
    parser.add_argument("--html", metavar="DIR", help="write every file with the count of each line")
    arguments = parser.parse_args()
    merged = merged_counts()
    print(table(summary(merged)))
    if arguments.missed:
        print("\n".join(["", "place, lines and name of functions that no test ran:", *missed_functions(merged)]))
    if arguments.html:
        subprocess.run(llvm_cov("show", merged, "--format=html", f"--output-dir={arguments.html}"), check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
