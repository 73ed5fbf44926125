#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `outrider bench` and records the figures that a page shows, for bench/run_pages.py.

    bench/record_bench.py bench/runs/NAME.json build/release/bin/outrider bench MODEL --rows 1,8,64
    bench/record_bench.py bench/runs/NAME.json build/release/bin/outrider bench MODEL --prompts FILE --all

--rows records milliseconds and the ratio to one row; --all every drafter; anything else each category of the prompts.
A run of --all that kept its result with --output is recorded by `bench/record_bench.py NAME.json RESULT.json`.
"""

import json
import pathlib
import shlex
import subprocess
import sys

import run_record


def rows_run(result):
    columns = [{"name": "rows"}, {"name": "ms", "format": ".3g"}, {"name": "ratio", "format": ".2f"}]
    return columns, [[row["rows"], row["median_ms"], row["ratio"]] for row in result["rows"]]


def drafters_run(result):
    sampled = f"T={result['temperature']:g}"
    columns = [{"name": "drafter"}, {"name": "tree"}, {"name": "length"}, {"name": "speed-up", "format": ".2f"},
               {"name": f"length, {sampled}"}, {"name": f"speed-up, {sampled}", "format": ".2f"}]
    return columns, [[row["drafter"], row["tree"], *decoding_cells(row["greedy"]), *decoding_cells(row["sampled"])]
                     for row in result["drafters"]]


def decoding_cells(decoding):
    """Length with its margin, marked where a text differed, and speed-up."""
    differs = "!" if decoding["identical"] is False else ""
    return f"{decoding['acceptance_length']:.2f} ± {decoding['acceptance_length_margin']:.2f}{differs}", decoding["speedup"]


def categories_run(result):
    columns = [{"name": "category"}, {"name": "prompts"}, {"name": "plain, tokens/s", "format": ".0f"},
               {"name": "speculative, tokens/s", "format": ".0f"}, {"name": "speed-up", "format": ".2f"},
               {"name": "length", "format": ".2f"}]
    parts = result["categories"] | {"all": result}
    return columns, [[name.replace("_", " "), part["prompts"], part["plain_tokens_per_second"],
                      part["speculative_tokens_per_second"], part["speedup"], part["acceptance_length"]]
                     for name, part in parts.items()]


def run_of(result):
    """Columns and rows of a result of `outrider bench --json`."""
    if "drafters" in result:
        if not result.get("complete", True):
            sys.exit("record_bench: expected a whole run, but it ended early: drafters or rounds are missing")
        return drafters_run(result)
    return rows_run(result) if result.get("bench") == "rows" else categories_run(result)


def main():
    if len(sys.argv) < 3 or "-h" in sys.argv[1:2] or "--help" in sys.argv[1:2]:
        sys.exit(__doc__)
    path, *command = sys.argv[1:]
    if len(command) == 1:
        output, commands = pathlib.Path(command[0]).read_text(encoding="utf-8"), []
    else:
        done = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"record_bench: {command[0]} ended with {done.returncode}")
        output, commands = done.stdout, [shlex.join(["outrider", *command[1:]])]
    columns, rows = run_of(json.loads(output))
    run_record.write_run(path, columns, rows, commands)
    print("\n".join(run_record.table_lines(columns, rows)))


if __name__ == "__main__":
    main()
