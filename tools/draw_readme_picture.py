#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/speculation.svg from a real run of the default models.

Usage: tools/draw_readme_picture.py PROGRAM [--output FILE.svg] [--runs N]

The left half is one step of `generate --json --show-tree`: the drafted tree, with the accepted nodes marked. The right
half is `bench --json` for each entry of RUNS, plain and speculative decoding in turn: the default model on the built-in
prompts, and a model of a larger shape with random weights, whose drafts are right with a given probability. The commands
are printed. When the default models change, RUNS, TREE and PROMPT are the lines to revise.
"""

import argparse
import json
import pathlib
import shlex
import subprocess
from xml.sax.saxutils import escape

PROMPT = "Once upon a time, there was a little girl named Lily. She"
TREE = "draft_target,max_draft_len=4,tree=dynamic,dynamic_tree_max_topK=3,max_total_draft_tokens=14"
SYNTHETIC = ["--draft-shape", "llama-25m", "--synthetic-acceptance", "0.7", "--speculative",
             "draft_target,max_draft_len=4", "--limit", "4", "--max-tokens", "48"]
RUNS = (
    ("outrider-small, Suffix, its own text", ["--speculative", "suffix", "--max-tokens", "128", "--threads", "1"]),
    ("1.1B Llama, bf16, 70% of drafts right", ["--shape", "llama-1b", "--weights", "bf16", *SYNTHETIC]),
    ("1.1B Llama, q4, 70% of drafts right", ["--shape", "llama-1b", "--weights", "q4", *SYNTHETIC]),
)
STYLE = """
  text { font-family: ui-sans-serif, system-ui, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 13px; fill: #1f2328 }
  .title { font-size: 15px; font-weight: 600 }
  .small { font-size: 12px; fill: #59636e }
  .card { fill: #ffffff; stroke: #d1d9e0 }
  .edge { fill: none; stroke: #b7bfc8; stroke-width: 1.5 }
  .taken { fill: none; stroke: #1a7f37; stroke-width: 3 }
  .node { fill: #f6f8fa; stroke: #b7bfc8 }
  .accepted { fill: #dafbe1; stroke: #1a7f37; stroke-width: 2 }
  .bonus { fill: #ddf4ff; stroke: #0969da; stroke-width: 2; stroke-dasharray: 5 3 }
  .dim { fill: #818b98 }
  .plain { fill: #b7bfc8 }
  .speculative { fill: #1a7f37 }
"""
DARK = """
  text { fill: #f0f6fc }
  .small { fill: #9198a1 }
  .card { fill: #0d1117; stroke: #3d444d }
  .edge { stroke: #545d68 }
  .taken { stroke: #3fb950 }
  .node { fill: #161b22; stroke: #545d68 }
  .accepted { fill: #12361f; stroke: #3fb950 }
  .bonus { fill: #0c2d52; stroke: #58a6ff }
  .dim { fill: #7d8590 }
  .plain { fill: #545d68 }
  .speculative { fill: #3fb950 }
"""
WIDTH, COLUMN, GAP, ROW = 960, 84, 16, 38
TREE_LEFT, TREE_TOP, BARS_LEFT = 28, 98, 672


def run_program(command):
    print(shlex.join(command))
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def chosen_step(trace):
    """The first step that commits the most tokens, of those whose accepted path is not the first child everywhere."""

    def rank(step):
        nodes = step["nodes"]
        accepted = [i for i, fate in enumerate(nodes["fates"]) if i > 0 and fate == "accepted"]
        detours = sum(nodes["parents"].index(nodes["parents"][node]) != node for node in accepted)
        return detours > 0, len(accepted), -step["step"]

    return max((step for step in trace["steps"] if len(step["nodes"]["tokens"]) > 4), key=rank)


class Tree:
    """The nodes of one step with a place (column, row) for each; the bonus token is a child of the last accepted one."""

    def __init__(self, step, texts):
        nodes = step["nodes"]
        self.parents = list(nodes["parents"])
        self.fates = ["pending"] + nodes["fates"][1:]
        self.texts = [texts[str(token)] for token in nodes["tokens"]]
        last = max(i for i, fate in enumerate(self.fates) if i == 0 or fate == "accepted")
        self.parents.append(last)
        self.fates.append("bonus")
        self.texts.append(texts[str(step["committed"]["tokens"][-1])])
        self.places, self.rows = {}, 0
        self.place(0, 0)

    def place(self, node, depth):
        children = [child for child, parent in enumerate(self.parents) if parent == node]
        children.sort(key=lambda child: self.fates[child] not in ("accepted", "bonus"))
        first = self.rows
        for child in children:
            self.place(child, depth + 1)
        if not children:
            self.rows += 1
        self.places[node] = (depth, first)

    def drafted(self):
        return len(self.fates) - 2

    def accepted(self):
        return self.fates.count("accepted")


def shown(token):
    return escape(token.replace("\n", "↵").strip() or "␣")


def tree_svg(tree):
    edges, boxes = [], []
    for node, fate in enumerate(tree.fates):
        column, row = tree.places[node]
        x, y = TREE_LEFT + column * (COLUMN + GAP), TREE_TOP + row * ROW
        if node > 0:
            parent_column, parent_row = tree.places[tree.parents[node]]
            from_x, from_y = TREE_LEFT + parent_column * (COLUMN + GAP) + COLUMN, TREE_TOP + parent_row * ROW
            style = "taken" if fate in ("accepted", "bonus") else "edge"
            edges.append(f'<path class="{style}" d="M{from_x} {from_y} C{from_x + 10} {from_y} {x - 12} {y} {x} {y}"/>')
        style = {"accepted": "accepted", "bonus": "bonus"}.get(fate, "node")
        mark = {"accepted": "✓ ", "bonus": "+ "}.get(fate, "")
        dim = "" if fate in ("accepted", "bonus", "pending") else ' class="dim"'
        boxes.append(f'<rect class="{style}" x="{x}" y="{y - 14}" width="{COLUMN}" height="28" rx="7"/>'
                     f'<text{dim} x="{x + COLUMN / 2}" y="{y + 4.5}" text-anchor="middle">'
                     f"{mark}{shown(tree.texts[node])}</text>")
    return "\n".join(edges + boxes)


def bars_svg(results, height):
    step, parts = (height - 130) / len(results), []
    for number, (label, result) in enumerate(results):
        y = 92 + number * step
        most = max(result["plain_tokens_per_second"], result["speculative_tokens_per_second"])
        scale = 160 / most
        parts.append(f'<text x="{BARS_LEFT}" y="{y}">{escape(label)}</text>')
        for offset, style in ((8, "plain"), (27, "speculative")):
            rate = result[f"{style}_tokens_per_second"]
            ratio = f' · {result["speedup"]:.2f}x' if style == "speculative" else ""
            parts.append(f'<rect class="{style}" x="{BARS_LEFT}" y="{y + offset}" width="{rate * scale:.1f}" height="15" '
                         f'rx="3"/><text class="small" x="{BARS_LEFT + rate * scale + 6:.1f}" y="{y + offset + 12}">'
                         f"{rate:,.{0 if rate >= 100 else 1}f}{ratio}</text>")
        parts.append(f'<text class="small" x="{BARS_LEFT}" y="{y + 57}">{result["acceptance_length"]:.2f} tokens per '
                     f'pass, outputs {"identical" if result["identical"] else "DIFFERENT"}</text>')
    return "\n".join(parts)


def picture(tree, results, note):
    height = max(TREE_TOP + tree.rows * ROW + 46, 400)
    title = (f"One step: {tree.drafted()} drafted tokens, one pass of the model, "
             f"{tree.accepted() + 1} tokens of text")
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"
     aria-label="{title}; tokens per second with and without speculation">
<style>{STYLE}@media (prefers-color-scheme: dark) {{{DARK}}}</style>
<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="10"/>
<text class="title" x="{TREE_LEFT}" y="34">{title}</text>
<text class="small" x="{TREE_LEFT}" y="56">✓ drafted and accepted · + the model's own next token · grey: drafted, not accepted</text>
{tree_svg(tree)}
<text class="title" x="{BARS_LEFT}" y="34">Tokens per second</text>
<text class="small" x="{BARS_LEFT}" y="56">grey: plain · green: speculative</text>
{bars_svg(results, height)}
<text class="small" x="{TREE_LEFT}" y="{height - 18}">{escape(note)}</text>
</svg>
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--output", default="docs/images/speculation.svg")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    trace = run_program([options.program, "generate", "-p", PROMPT, "--max-tokens", "48", "--speculative", TREE,
                         "--show-tree", "--json"])["trace"]
    tree = Tree(chosen_step(trace), trace["token_texts"])
    results = [(label, run_program([options.program, "bench", *arguments, "--runs", str(options.runs), "--json"]))
               for label, arguments in RUNS]
    note = (f"Left: {pathlib.Path(trace['model']).name}, DraftTarget, dynamic tree. Right: {results[0][1]['kernels']} "
            f"kernels, greedy, medians of {options.runs} runs, plain and speculative in turn.")
    pathlib.Path(options.output).write_text(picture(tree, results, note), encoding="utf-8")
    print(note)
    for label, result in results:
        print(f"{label}: {result['plain_tokens_per_second']:.0f} -> {result['speculative_tokens_per_second']:.0f}, "
              f"{result['speedup']:.2f}x, {result['acceptance_length']:.2f} tokens per pass")


if __name__ == "__main__":
    main()
