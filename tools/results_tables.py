#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes Markdown tables (docs/reference/results.md) from the output of `outrider bench --all --json`.

    python3 tools/results_tables.py RESULTS.json                 # every drafter, greedy and sampled
    python3 tools/results_tables.py RESULTS.json --categories    # greedy, by category of the prompts
"""
import argparse
import json
import sys
from pathlib import Path


def table(header, rows):
    """Returns a Markdown table with the first two columns aligned left and numbers aligned right."""
    align = ["---", "---"] + ["---:"] * (len(header) - 2)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, align, *rows])


def megabytes(count):
    return f"{count / 1e6:.2f}" if count else "-"


def decoding_cells(decoding):
    differs = "!" if decoding["identical"] is False else ""
    return [
        f"{decoding['acceptance_length']:.2f} ± {decoding['acceptance_length_margin']:.2f}{differs}",
        f"{decoding['speedup']:.2f}x",
        f"{100 * decoding['draft_share']:.0f}%",
    ]


def overall(results):
    sampled = f"T={results['temperature']:g}"
    header = ["drafter", "tree", "length", "speed-up", "draft"]
    header += [f"{name}, {sampled}" for name in ("length", "speed-up", "draft")] + ["weights, MB", "cache, MB"]
    rows = [
        [row["drafter"], row["tree"], *decoding_cells(row["greedy"]), *decoding_cells(row["sampled"]),
         megabytes(row["weight_bytes"]), megabytes(row["cache_bytes"])]
        for row in results["drafters"]
    ]
    return table(header, rows)


def by_category(results):
    """Tabulates length and speed-up of greedy output with each drafter's tree that was fastest over all prompts."""
    fastest = {}
    for row in results["drafters"]:
        best = fastest.setdefault(row["drafter"], row)
        if speedup(row["greedy"]) > speedup(best["greedy"]):
            fastest[row["drafter"]] = row
    categories = list(results["drafters"][0]["greedy"]["categories"])
    rows = [
        [name, row["tree"], *(f"{cell['acceptance_length']:.2f}, {speedup(cell):.2f}x"
                              for cell in (row["greedy"]["categories"][c] for c in categories))]
        for name, row in fastest.items()
    ]
    return table(["drafter", "tree", *(c.replace("_", " ") for c in categories)], rows)


def speedup(figures):
    return figures["speedup"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="output of outrider bench --all --json")
    parser.add_argument("--categories", action="store_true", help="by category of the prompts")
    arguments = parser.parse_args()
    results = json.loads(arguments.results.read_text())
    if "drafters" not in results:
        sys.exit(f"{arguments.results}: expected the output of bench --all --json, found no drafters")
    if not results.get("complete", True):
        print(f"{arguments.results}: the run ended early: drafters or rounds are missing", file=sys.stderr)
    print(by_category(results) if arguments.categories else overall(results))


if __name__ == "__main__":
    main()
