#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures draft trees: SpecInfer's Tables 1 and 2, and the two lossless rules side by side.

Runs `outrider doctor` and `outrider bench` and prints the three tables as Markdown. Acceptance lengths (tokens per target
pass, bonus token included) do not depend on the machine.
"""

from outrider_runs import prompt_arguments, run

WIDTHS = (1, 2, 3, 4, 5)
RULE_SHAPES = ("max_draft_len=4", "expansion=[2,1,1,1]", "expansion=[3,1,1,1]", "expansion=[4,1,1,1]", "expansion=[3,3]",
               "expansion=[4,2,1]")


def length(args, speculative, temperature, rule="coupled"):
    options = ("--runs", "1", "--temperature", str(temperature), "--acceptance", rule)
    return run(args, "bench", speculative + ",policy=fixed", *options)["acceptance_length"]


def table(title, head, rows):
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(cell if isinstance(cell, str) else f'{cell:.2f}' for cell in row)} |", flush=True)


def main():
    args = prompt_arguments(__doc__, limit=60).parse_args()

    agreement = run(args, "doctor", "draft_target")["agreement"]
    table("Chance that the target's token is among the draft's first k (SpecInfer, Table 1)",
          ("", *(f"k={k}" for k in WIDTHS)),
          [("greedy", *agreement["top_k_coverage"]), ("sampled", *agreement["sampled_top_k_coverage"])])

    def widths(temperature, rule):
        return [length(args, f"draft_target,expansion=[1,1,{k},1,1,1,1,1]", temperature, rule) for k in WIDTHS]

    table("Tokens per step by tree width at depth 8 (SpecInfer, Table 2)", ("", *(f"width {k}" for k in WIDTHS)),
          [("greedy", *widths(0, "coupled")), ("temperature 1, coupled", *widths(1, "coupled")),
           ("temperature 1, rejection", *widths(1, "rejection"))])

    rows = []
    for shape in RULE_SHAPES:
        coupled = length(args, f"draft_target,{shape}", 1, "coupled")
        rejection = length(args, f"draft_target,{shape}", 1, "rejection")
        rows.append((f"`{shape}`", coupled, rejection, coupled / rejection))
    table("Tokens per step at temperature 1", ("tree", "coupled", "rejection", "ratio"), rows)


if __name__ == "__main__":
    main()
