#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times whole passes of Outrider and of llama.cpp over the same GGUF file, in turn, in the same minutes.

    bench/compare_llama.py MODEL.gguf --batched-bench ../llama.cpp/build/bin/llama-batched-bench --rows 1,2,4,8,16,32,64

A pass of R rows is one batch of R sequences after a shared context for llama-batched-bench (the decoding columns of
its table), and R rows of one sequence after a context of the same length for `outrider bench --rows`. Both compute
the logits of all rows. One round runs each program once. bench/README.md says how to build llama.cpp.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def outrider_ms(options):
    """Rows -> milliseconds of one pass."""
    command = [options.outrider, "bench", options.model, "--rows", ",".join(map(str, options.rows)), "--context",
               str(options.context), "--threads", str(options.threads), "--runs", str(options.repetitions), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result = json.loads(done.stdout)
    return {row["rows"]: row["median_ms"] for row in result["rows"]}, result["read"]["gb_per_second"]


def llama_command(options):
    tokens = options.context + options.repetitions * max(options.rows)
    return [options.batched_bench, "-m", options.model, "-t", str(options.threads), "-c", str(tokens + 64), "-pps",
            "-npp", str(options.context), "-ntg", str(options.repetitions), "-npl", ",".join(map(str, options.rows)),
            *options.llama_options]


# | PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | ...
TABLE_LINE = re.compile(r"^\|\s*\d+ \|\s*(\d+) \|\s*(\d+) \|\s*\d+ \|[^|]*\|[^|]*\|\s*([\d.]+) \|", re.MULTILINE)


def parse_passes(text):
    """Rows -> milliseconds, from the table of llama-batched-bench: the mean of its passes."""
    return {int(rows): float(seconds) * 1e3 / int(passes) for passes, rows, seconds in TABLE_LINE.findall(text)}


def llama_ms(options):
    done = subprocess.run(llama_command(options), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"llama-batched-bench ended with {done.returncode}; the last it said:\n" + (done.stdout + done.stderr)[-1000:])
    passes = parse_passes(done.stdout + done.stderr)
    missing = [rows for rows in options.rows if rows not in passes]
    if missing:
        sys.exit(f"expected a line for {missing} rows from llama-batched-bench, found none:\n{done.stdout}{done.stderr}")
    return passes


def table(rows, ours, theirs):
    """One line per row count; ours and theirs are lists, one dictionary per round."""
    lines = [f"{'rows':>6} {'outrider ms':>12} {'ratio':>7} {'llama.cpp ms':>13} {'ratio':>7} {'outrider / llama':>17}"]
    median = {name: {r: statistics.median(one[r] for one in runs) for r in rows}
              for name, runs in (("ours", ours), ("theirs", theirs))}
    for r in rows:
        quotient = statistics.median(a[r] / b[r] for a, b in zip(ours, theirs))
        lines.append(f"{r:>6} {median['ours'][r]:>12.2f} {median['ours'][r] / median['ours'][rows[0]]:>7.2f} "
                     f"{median['theirs'][r]:>13.2f} {median['theirs'][r] / median['theirs'][rows[0]]:>7.2f} "
                     f"{quotient:>17.3f}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a .gguf file")
    parser.add_argument("--outrider", default=str(ROOT / "build" / "release" / "bin" / "outrider"))
    parser.add_argument("--batched-bench", required=True, help="llama-batched-bench")
    parser.add_argument("--rows", type=lambda text: sorted({int(part) for part in text.split(",")}),
                        default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each program, in turn [5]")
    parser.add_argument("--repetitions", type=int, default=8, help="passes of each row count in one run [8]")
    parser.add_argument("--llama-options", type=str.split, default=[], help="more for llama.cpp, such as '-rtr -fa'")
    parser.add_argument("--json", help="also write all measurements to this file")
    options = parser.parse_args()
    ours, theirs, read = [], [], []
    for turn in range(options.rounds):
        for program in ("outrider", "llama") if turn % 2 == 0 else ("llama", "outrider"):
            if program == "outrider":
                passes, gigabytes = outrider_ms(options)
                ours.append(passes)
                read.append(gigabytes)
            else:
                theirs.append(llama_ms(options))
    print(f"{options.model}: {options.context} tokens cached, {options.threads} threads, medians of {options.rounds} "
          f"rounds of {options.repetitions} passes; reading {statistics.median(read):.1f} GB/s")
    print(f"{' '.join(map(str, llama_command(options)))}\n")
    print("\n".join(table(options.rows, ours, theirs)))
    if options.json:
        pathlib.Path(options.json).write_text(
            json.dumps({"bench": "llama", "model": options.model, "context": options.context, "rows": options.rows,
                        "outrider_ms": ours, "llama_ms": theirs, "read_gb_per_second": read}), encoding="utf-8")


if __name__ == "__main__":
    main()
