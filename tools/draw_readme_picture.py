#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/speculation.svg from a real run of SmolLM2-135M-Instruct, the default model.

Usage: tools/draw_readme_picture.py PROGRAM [--output FILE.svg] [--bars length|speed] [--runs N]

The left half is one step of `generate --json --show-tree`: the drafted tree, with the accepted nodes marked. The right
half comes from `bench --json`. `length` shows tokens per pass of the model, which do not depend on the machine. `speed`
shows tokens per second, plain and speculative in turn, and needs a machine with nothing else running. The commands are
printed. When the models change, SPEED_RUNS, LENGTH_RUNS, TREE and PROMPT are the lines to revise.
"""

import argparse
import functools
import json
import pathlib
import shlex
import subprocess
from xml.sax.saxutils import escape

MODEL = "smollm2"
PROMPT = "Write a Python class for a bank account with deposit and withdraw."
HEAD = "speculative_model=models/smollm2-135m-eagle3,policy=fixed"
TREE = f"eagle3,{HEAD},max_draft_len=4,tree=dynamic,dynamic_tree_max_topK=3,max_total_draft_tokens=12"
SYNTHETIC = ["--draft-shape", "llama-25m", "--synthetic-acceptance", "0.7", "--speculative",
             "draft_target,policy=fixed,max_draft_len=4", "--limit", "4", "--max-tokens", "48"]
SPEED_RUNS = (
    ("outrider-small, Suffix", ["builtin"], ["--speculative", "suffix,policy=fixed", "--max-tokens", "128", "--threads", "1"]),
    ("1.1B Llama, bf16, 70% of drafts right", [], ["--shape", "llama-1b", "--weights", "bf16", *SYNTHETIC]),
    ("1.1B Llama, q4, 70% of drafts right", [], ["--shape", "llama-1b", "--weights", "q4", *SYNTHETIC]),
)
LENGTH_RUNS = tuple((label, [MODEL, "--prompts", "bench/questions.jsonl"], ["--speculative", config, "--max-tokens", "96"])
                    for label, config in (
    ("earlier text (Suffix), chain", "suffix,policy=fixed,max_draft_len=4"),
    ("head (EAGLE-3), chain", f"eagle3,{HEAD},tree=chain,max_draft_len=4"),
    ("head (EAGLE-3), tree of 24", f"eagle3,{HEAD},tree=dynamic,max_draft_len=6,max_total_draft_tokens=24"),
    ("both in one tree of 24", f"combine=[suffix,eagle3],{HEAD},tree=dynamic,max_draft_len=6,max_total_draft_tokens=24"),
))
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
WIDTH, COLUMN, GAP, ROW = 960, 84, 16, 44
TREE_LEFT, TREE_TOP, BARS_LEFT = 28, 104, 672


def run_program(command):
    print(shlex.join(command))
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def chosen_step(trace):
    """The first step that commits the most tokens, among steps where the accepted path is not the first child
    everywhere."""

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


def speed_bars(results, height):
    step, parts = (height - 130) / len(results), []
    for number, (label, result) in enumerate(results):
        y = 92 + number * step
        scale = 160 / max(result["plain_tokens_per_second"], result["speculative_tokens_per_second"])
        parts.append(f'<text x="{BARS_LEFT}" y="{y}">{escape(label)}</text>')
        for offset, style in ((8, "plain"), (27, "speculative")):
            rate = result[f"{style}_tokens_per_second"]
            ratio = f' · {result["speedup"]:.2f}x' if style == "speculative" else ""
            parts.append(bar(style, y + offset, rate * scale, f"{rate:,.{0 if rate >= 100 else 1}f}{ratio}"))
        parts.append(f'<text class="small" x="{BARS_LEFT}" y="{y + 57}">{result["acceptance_length"]:.2f} tokens per '
                     f'pass, outputs {"identical" if result["identical"] else "DIFFERENT"}</text>')
    return "\n".join(parts)


def length_bars(results, height):
    rows = [("plain decoding", 1.0)] + [(label, result["acceptance_length"]) for label, result in results]
    step, scale, parts = (height - 130) / len(rows), 200 / max(length for _, length in rows), []
    for number, (label, length) in enumerate(rows):
        y = 92 + number * step
        style = "plain" if number == 0 else "speculative"
        parts.append(f'<text x="{BARS_LEFT}" y="{y}">{escape(label)}</text>')
        parts.append(bar(style, y + 9, length * scale, f"{length:.2f}"))
    return "\n".join(parts)


def bar(style, y, width, text):
    return (f'<rect class="{style}" x="{BARS_LEFT}" y="{y:.1f}" width="{width:.1f}" height="15" rx="3"/>'
            f'<text class="small" x="{BARS_LEFT + width + 6:.1f}" y="{y + 12:.1f}">{text}</text>')


def picture(tree, bars, titles, note):
    height = max(TREE_TOP + tree.rows * ROW + 46, 400)
    title = (f"One step: {tree.drafted()} drafted tokens, one pass of the model, "
             f"{tree.accepted() + 1} tokens of text")
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"
     aria-label="{title}; {titles[0]}">
<style>{STYLE}@media (prefers-color-scheme: dark) {{{DARK}}}</style>
<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="10"/>
<text class="title" x="{TREE_LEFT}" y="34">{title}</text>
<text class="small" x="{TREE_LEFT}" y="56">✓ drafted and accepted · + the model's own next token · grey: drafted, not accepted</text>
{tree_svg(tree)}
<text class="title" x="{BARS_LEFT}" y="34">{titles[0]}</text>
<text class="small" x="{BARS_LEFT}" y="56">{titles[1]}</text>
{bars(height)}
<text class="small" x="{TREE_LEFT}" y="{height - 18}">{escape(note)}</text>
</svg>
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--output", default="docs/images/speculation.svg")
    parser.add_argument("--bars", choices=("length", "speed"), default="length")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    trace = run_program([options.program, "generate", MODEL, "--chat", "-p", PROMPT, "--max-tokens", "48", "--speculative", TREE,
                         "--show-tree", "--json"])["trace"]
    tree = Tree(chosen_step(trace), trace["token_texts"])
    is_speed = options.bars == "speed"
    results = [(label, run_program([options.program, "bench", *model, *arguments, "--runs", str(options.runs), "--json"]))
               for label, model, arguments in (SPEED_RUNS if is_speed else LENGTH_RUNS)]
    if not all(result["identical"] for _, result in results):
        raise SystemExit("outputs with and without speculation differ")
    target = pathlib.Path(trace["model"]).stem
    if is_speed:
        titles = ("Tokens per second", "grey: plain · green: speculative")
        note = (f"Left: {target}, EAGLE-3, dynamic tree. Right: {results[0][1]['kernels']} kernels, greedy, medians of "
                f"{options.runs} runs, plain and speculative in turn.")
    else:
        titles = ("Tokens per pass of the model", "all outputs identical to plain decoding")
        note = f"{target} on the {results[0][1]['prompts']} questions of bench/questions.jsonl, greedy, up to 96 tokens each."
    bars = functools.partial(speed_bars if is_speed else length_bars, results)
    pathlib.Path(options.output).write_text(picture(tree, bars, titles, note), encoding="utf-8")
    print(note)
    for label, result in results:
        print(f"{label}: {result['plain_tokens_per_second']:.1f} -> {result['speculative_tokens_per_second']:.1f} tokens "
              f"per second, {result['speedup']:.2f}x, {result['acceptance_length']:.2f} tokens per pass")


if __name__ == "__main__":
    main()
