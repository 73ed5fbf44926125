#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares acceptance lengths of drafters on the same prompts, from the output of `outrider bench --json`.

    python3 tools/compare_lengths.py A.json B.json [C.json ...]

Every file is one run of one drafter. A line gives its length with the 95 % interval over prompts, and the difference
from the run before it with the interval of that difference, in which each prompt is compared with itself. An asterisk
marks differences that are unlikely to be chance. The intervals come from the ratio estimator: tokens per pass is a
ratio of two sums over prompts.
"""
import json
import math
import sys

# Student's 97.5 % quantiles by degrees of freedom; between them the next smaller entry holds.
QUANTILES = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 7: 2.36, 10: 2.23, 15: 2.13, 20: 2.09, 30: 2.04, 60: 2.00, 120: 1.98}


def read(path):
    """Returns {prompt id: (committed tokens, passes)} of a run."""
    with open(path) as file:
        run = json.load(file)
    if "results" not in run or any("steps" not in row for row in run["results"]):
        sys.exit(f"{path}: expected the output of bench --json with results by prompt, found none")
    return {row["id"]: (row["acceptance_length"] * row["steps"], row["steps"]) for row in run["results"]}


def length(counts):
    return sum(tokens for tokens, _ in counts.values()) / sum(passes for _, passes in counts.values())


def influences(counts):
    """How much each prompt moves the ratio of the sums."""
    ratio, passes = length(counts), sum(passes for _, passes in counts.values())
    return {key: (tokens - ratio * steps) / passes for key, (tokens, steps) in counts.items()}


def margin(values):
    n = len(values)
    if n < 2:
        return math.nan
    quantile = QUANTILES[max(freedom for freedom in QUANTILES if freedom <= n - 1)]
    return quantile * math.sqrt(sum(value * value for value in values) * n / (n - 1))


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    before = None
    for path in sys.argv[1:]:
        counts = read(path)
        line = f"{path}: {length(counts):.2f} ± {margin(list(influences(counts).values())):.2f}, {len(counts)} prompts"
        if before is not None:
            if before.keys() != counts.keys():
                sys.exit(f"{path}: expected the prompts of the run before it, found others")
            old, new = influences(before), influences(counts)
            width = margin([new[key] - old[key] for key in new])
            difference = length(counts) - length(before)
            line += f"; {difference:+.2f} ± {width:.2f}{' *' if abs(difference) > width else ''}"
        print(line)
        before = counts


if __name__ == "__main__":
    main()
