#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does a prediction gain, and what does a useless one cost?

Runs `outrider generate` plainly, with the method, and with the method and predictions, in turn. Every prediction is made
from the plain answer: `edited` has another word in some of its lines, `broken` another word in every eighth place, and
`foreign` is another prompt's answer. Prints the decoding speed over the plain speed, and fails where a text differs."""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outrider", default="build/release/bin/outrider")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--prompts", default="bench/prompts.jsonl", help="JSONL file with `prompt`")
    parser.add_argument("--limit", type=int, default=4, help="prompts")
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--temperature", default="0.8")
    parser.add_argument("--speculative", default="ngram")
    parser.add_argument("--changed-lines", type=int, default=10, help="of `edited`")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("options", nargs="*", help="options of `outrider generate` for every run, after --")
    return parser.parse_args()


def generate(args, prompt, *options):
    """Returns the JSON object of one run."""
    words = [args.outrider, "generate", args.model, "-p", prompt, "--max-tokens", str(args.max_tokens), "--ignore-eos",
             "--temperature", args.temperature, "--seed", "1", "--json", *args.options, *options]
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)}: {result.stderr.strip()}")
    return json.loads(result.stdout)


def edited(text, lines):
    """Returns the text with another word in so many places, at about equal distances, each on its own line."""
    words = text.split(" ")
    for i in range(lines):
        words[(2 * i + 1) * len(words) // (2 * lines)] = "elsewhere"
    return " ".join(words)


def predictions(args, answers, index):
    text = answers[index]
    words = text.split(" ")
    broken = [random.choice(words) if i % 8 == 7 else word for i, word in enumerate(words)]
    return {"edited": edited(text, args.changed_lines), "broken": " ".join(broken),
            "foreign": answers[(index + 1) % len(answers)]}


def main():
    args = parse()
    random.seed(1)
    lines = pathlib.Path(args.prompts).read_text(encoding="utf-8").splitlines()[:args.limit]
    prompts = [json.loads(line)["prompt"] for line in lines]
    answers = [generate(args, prompt, "--speculative", "none")["text"] for prompt in prompts]
    ratios = {}
    for index, prompt in enumerate(prompts):
        with tempfile.TemporaryDirectory() as folder:
            cases = {"no prediction": ()}
            for name, text in predictions(args, answers, index).items():
                file = pathlib.Path(folder, name)
                file.write_text(text, encoding="utf-8")
                cases[name] = ("--prediction", str(file))
            for _ in range(args.runs):
                plain = generate(args, prompt, "--speculative", "none")
                for name, options in cases.items():
                    run = generate(args, prompt, "--speculative", args.speculative, *options)
                    if run["token_ids"] != plain["token_ids"]:
                        sys.exit(f"{name}: another text than without speculation for prompt {index}")
                    ratio = run["timings"]["tokens_per_second"] / plain["timings"]["tokens_per_second"]
                    ratios.setdefault(name, {}).setdefault(index, []).append(ratio)
    for name, by_prompt in ratios.items():
        medians = [statistics.median(values) for values in by_prompt.values()]
        print(f"{name:<14} {statistics.median(medians):.3f}   " + " ".join(f"{ratio:.3f}" for ratio in medians))


if __name__ == "__main__":
    main()
