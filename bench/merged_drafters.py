#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""When does it pay to merge two drafters into one tree?

Runs each drafter and then the pair over the same prompts, with dynamic trees of equal numbers of nodes, and prints tokens
per target pass. From the traces of the pair it counts the accepted drafts that both drafters proposed, and the drafts that
only one of them proposed. The figures do not depend on the machine."""

import json
import pathlib
import subprocess
import sys

from outrider_runs import prompt_arguments

MODELS = "models/outrider-"
FIRST, SECOND, LARGE = (f"{MODELS}{name}" for name in ("draft-a", "draft-b", "draft"))
# Name of the pair, its drafters, and the pair as one method.
PAIRS = (
    ("two draft models, boosted", f"draft_target,speculative_model={FIRST}", f"draft_target,speculative_model={SECOND}",
     f"SpecInfer,speculative_models=[{FIRST},{SECOND}]"),
    ("a large and a small draft model", f"draft_target,speculative_model={LARGE}",
     f"draft_target,speculative_model={SECOND}", f"SpecInfer,speculative_models=[{LARGE},{SECOND}]"),
    ("draft model and suffix tree", f"draft_target,speculative_model={LARGE}", "suffix",
     f"combined,combine=[draft_target,suffix],speculative_model={LARGE}"),
    ("draft model and n-grams", f"draft_target,speculative_model={LARGE}", "ngram",
     f"combined,combine=[draft_target,ngram],speculative_model={LARGE}"),
    ("EAGLE-3 head and suffix tree", f"eagle3,speculative_model={MODELS}eagle3", "suffix",
     f"combined,combine=[eagle3,suffix],speculative_model={MODELS}eagle3"),
)


def trace(args, prompt, speculative):
    """Returns the steps of one answer."""
    shape = f"policy=fixed,max_draft_len=6,tree=dynamic,dynamic_tree_max_topK=8,max_total_draft_tokens={args.nodes}"
    words = [args.outrider, "generate", args.model, "--prompt", prompt, "--max-tokens", str(args.max_tokens),
             "--json", "--show-tree", "--speculative", f"{speculative},{shape}"]
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)}: {result.stderr.strip()}")
    return json.loads(result.stdout)["trace"]["steps"]


def measured(args, prompts, speculative):
    """Returns tokens per pass, and the accepted drafts by the drafters that proposed them: a bit for each."""
    tokens = passes = 0
    accepted = {1: 0, 2: 0, 3: 0}
    for prompt in prompts:
        steps = trace(args, prompt, speculative)
        passes += len(steps)
        for step in steps:
            tokens += len(step["committed"]["tokens"])
            nodes = step["nodes"]
            for sources, fate in list(zip(nodes["sources"], nodes["fates"]))[1:]:
                accepted[sources] += fate == "accepted"
    return tokens / passes, accepted


def main():
    parser = prompt_arguments(__doc__, limit=40)
    parser.add_argument("--nodes", type=int, default=16, help="of a tree")
    args = parser.parse_args()
    lines = pathlib.Path(args.prompts).read_text(encoding="utf-8").splitlines()[:args.limit]
    prompts = [json.loads(line)["prompt"] for line in lines]
    known = {}

    def length(speculative):
        if speculative not in known:
            known[speculative], _ = measured(args, prompts, speculative)
        return known[speculative]

    print("| pair | first | second | merged | gain over the better | proposed by both | only the first | only the second |")
    print("|---|---|---|---|---|---|---|---|")
    for name, first, second, both in PAIRS:
        single = length(first), length(second)
        merged, accepted = measured(args, prompts, both)
        shares = [accepted[sources] / sum(accepted.values()) for sources in (3, 1, 2)]
        print(f"| {name} | {single[0]:.2f} | {single[1]:.2f} | {merged:.2f} | {merged / max(single) - 1:+.1%} | "
              f"{' | '.join(f'{share:.0%}' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
