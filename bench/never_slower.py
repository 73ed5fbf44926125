#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is speculation with policy auto ever slower than plain decoding, and how close is it to the best fixed setting?

Runs `outrider bench` (plain and speculative in turn, prompt by prompt) over domains and adversarial cases and prints
tokens per second with speculation over those without, per case, and beside the best fixed length of a sweep.
"""
import statistics

from outrider_runs import prompt_arguments, run

AUTO = {
    "auto": "auto",
    "draft_target": "draft_target,max_draft_len=8,policy=auto",
    "ngram": "ngram,max_draft_len=8,policy=auto",
}
FIXED_LENGTHS = (1, 2, 3, 4, 6, 8)


def bench(args, speculative, *options):
    return run(args, "bench", speculative, "--runs", str(args.runs), *options)


def medians(rounds):
    """Returns the median speed-up of several rounds, per domain and overall."""
    names = rounds[0]["categories"]
    result = {name: statistics.median(r["categories"][name]["speedup"] for r in rounds) for name in names}
    result["all"] = statistics.median(r["speedup"] for r in rounds)
    return result


def all_cases():
    """Returns (name, --speculative, options) of every case with policy auto."""
    cases = []
    for name, config in AUTO.items():
        for temperature in ("0", "0.7", "1.5"):
            cases.append((f"{name}, temperature {temperature}", config, ("--temperature", temperature)))
    cases.append(("always wrong n-gram", AUTO["ngram"], ("--synthetic-acceptance", "0")))
    cases.append(("random draft model", AUTO["draft_target"], ("--synthetic-acceptance", "0")))
    cases.append(("random draft model, temperature 1.5", AUTO["draft_target"],
                  ("--synthetic-acceptance", "0", "--temperature", "1.5")))
    return cases


def print_best_fixed(results, fixed):
    """Prints policy auto beside the best fixed length."""
    for temperature in ("0", "0.7"):
        by_length = {length: medians(fixed[length, temperature])["all"] for length in FIXED_LENGTHS}
        best = max(by_length, key=by_length.get)
        for name in ("draft_target", "auto"):
            own = medians(results[f"{name}, temperature {temperature}"])["all"]
            print(f"temperature {temperature}: {name} {own:.2f}, best fixed length {best}: {by_length[best]:.2f} "
                  f"({', '.join(f'{length}: {ratio:.2f}' for length, ratio in by_length.items())}); "
                  f"{own / by_length[best]:.3f} of it")


def main():
    parser = prompt_arguments(__doc__, limit=24)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of all cases, interleaved")
    args = parser.parse_args()

    cases = all_cases()
    sweep = [(length, temperature) for temperature in ("0", "0.7") for length in FIXED_LENGTHS]

    results = {name: [] for name, _, _ in cases}
    fixed = {key: [] for key in sweep}
    for _ in range(args.rounds):
        for name, config, options in cases:
            results[name].append(bench(args, config, *options))
        for length, temperature in sweep:
            fixed[length, temperature].append(
                bench(args, f"draft_target,policy=fixed,max_draft_len={length}", "--temperature", temperature))

    worst = 10.0
    for name, _, _ in cases:
        ratios = medians(results[name])
        worst = min(worst, *ratios.values())
        print(f"{name:<40}" + "  ".join(f"{domain} {ratio:.2f}" for domain, ratio in ratios.items()), flush=True)
    print(f"least of all: {worst:.3f}\n")
    print_best_fixed(results, fixed)


if __name__ == "__main__":
    main()
