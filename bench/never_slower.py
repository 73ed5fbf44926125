#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is speculation with policy auto ever slower than plain decoding, and how close is it to the best fixed setting?

Runs `outrider bench` (plain and speculative in turn, prompt by prompt) over domains and adversarial cases. Prints the
speed with speculation over the plain speed, per case, and beside the best fixed length of a sweep. With --case it runs
only one case, says which prompt with long answers was slowest, and has no sweep. """
import statistics

from outrider_runs import prompt_arguments, run

AUTO = {
    "auto": "auto",
    "draft_target": "draft_target,max_draft_len=8,policy=auto",
    "ngram": "ngram,max_draft_len=8,policy=auto",
}
FIXED_LENGTHS = (1, 2, 3, 4, 6, 8)
LONG_ANSWER = 64  # tokens


def bench(args, speculative, *options):
    return run(args, "bench", speculative, "--runs", str(args.runs), *options)


def medians(rounds):
    """Returns the median speed-up of several rounds, per domain and overall."""
    names = rounds[0]["categories"]
    result = {name: statistics.median(r["categories"][name]["speedup"] for r in rounds) for name in names}
    result["all"] = statistics.median(r["speedup"] for r in rounds)
    return result


def worst_prompt(rounds, tokens):
    """Returns the least median ratio of a prompt with at least so many tokens of output, and the prompt's id."""
    ratios = {}
    for run_of_all in rounds:
        for result in run_of_all["results"]:
            if result["output_tokens"] >= tokens:
                ratio = result["speculative_tokens_per_second"] / result["plain_tokens_per_second"]
                ratios.setdefault(result["id"], []).append(ratio)
    return min(((statistics.median(values), name) for name, values in ratios.items()), default=None)


def run_alone(args):
    """Prints the ratios of one case."""
    name, config, options = next(case for case in all_cases() if case[0] == args.case)
    rounds = [bench(args, config, *options) for _ in range(args.rounds)]
    ratios = medians(rounds)
    print(f"{name:<40}" + "  ".join(f"{domain} {ratio:.3f}" for domain, ratio in ratios.items()))
    print(f"prompts: {rounds[0]['prompts']}; slowest of those with {LONG_ANSWER} tokens and more: "
          f"{worst_prompt(rounds, LONG_ANSWER)}")


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
    parser.add_argument("--case", choices=[name for name, _, _ in all_cases()])
    args = parser.parse_args()
    if args.case:
        return run_alone(args)

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
    return None


if __name__ == "__main__":
    main()
