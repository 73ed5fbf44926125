#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns results of `outrider bench --rows ... --json` and of bench/compare_llama.py --json into one HTML page.

    bench/make_page.py --output page.html --machine "2 cores, AMX" "now=now.json" "before=before.json" llama.json

A name before = is what the plots call the series; without it model, weights and kernels are. The page holds its plots
as SVG and needs nothing else. Needs matplotlib (apt-get install python3-matplotlib).
"""

import argparse
import html
import io
import json
import pathlib
import re
import statistics

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

INK = "#010203"  # replaced by currentColor, so that plots follow the page's light or dark scheme
COLOURS = ["#4c8bf5", "#e8710a", "#1e9e5a", "#b556d1", "#d9455f", "#8a8f98", "#12a4b5", "#a58a00"]
STYLE = """
:root { color-scheme: light dark; --ink: #1d2127; --paper: #ffffff; --faint: #6b7280; --line: #d8dce2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #15181d; --faint: #9aa1ab; --line: #343a43; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p, figcaption { color: var(--faint); } figure { margin: 1rem 0; } svg { width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { text-align: right; padding: 0.25rem 0.7rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
"""


class Series:
    """Milliseconds by rows; for Outrider also the weights' bytes and the read bandwidth of that run."""

    def __init__(self, name, passes, context, streamed_bytes=None, read_gb=None):
        self.name, self.passes, self.context = name, passes, context
        self.streamed_bytes, self.read_gb = streamed_bytes, read_gb

    @property
    def rows(self):
        return sorted(self.passes)

    def ratio(self, rows):
        return self.passes[rows] / self.passes[self.rows[0]]

    def gigabytes(self, rows):
        """Bytes of weights read per second in a pass."""
        return self.streamed_bytes / self.passes[rows] * 1e-6


def medians(rows, runs):
    return {r: statistics.median(run[str(r)] for run in runs) for r in rows}


def load(argument):
    """Returns the series of one file."""
    name, _, path = argument.rpartition("=")
    result = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    if result.get("bench") == "rows":
        model = pathlib.Path(result["model"]).name.removeprefix("shape:").split(",")[0]
        name = name or f"{model}, {result['weights']}, {result['kernels']}"
        passes = {row["rows"]: row["median_ms"] for row in result["rows"]}
        return [Series(name, passes, result["context"], result["streamed_bytes"], result["read"]["gb_per_second"])]
    if result.get("bench") == "llama":
        prefix = f"{name}: " if name else ""
        return [Series(f"{prefix}{program}", medians(result["rows"], result[key]), result["context"])
                for program, key in (("Outrider", "outrider_ms"), ("llama.cpp", "llama_ms"))]
    raise SystemExit(f"{path}: expected the JSON of bench --rows or of compare_llama.py, found something else")


def figure_svg(draw, width=8.0, height=4.2):
    settings = {"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 11, "text.color": INK,
                "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK,
                "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "outrider"}
    with pyplot.rc_context(settings):
        figure, axes = pyplot.subplots(figsize=(width, height))
        draw(axes)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None})
        pyplot.close(figure)
    svg = text.getvalue()
    svg = svg[svg.index("<svg"):].replace(INK, "currentColor")
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, 1), 1)


def plain_numbers(axis, ticks=None):
    if ticks is not None:
        axis.set_ticks(ticks)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def curves(series, value, label):
    def draw(axes):
        for one, colour in zip(series, COLOURS * len(series)):
            axes.plot(one.rows, [value(one, r) for r in one.rows], marker="o", markersize=4.5, linewidth=1.8,
                      color=colour, label=one.name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        plain_numbers(axes.yaxis)
        plain_numbers(axes.xaxis, sorted({r for one in series for r in one.rows}))
        axes.set_xlabel("rows of the pass")
        axes.set_ylabel(label)
        axes.grid(color=INK, alpha=0.13, linewidth=0.8)
        axes.legend(frameon=False)

    return figure_svg(draw)


def bandwidth_bars(series):
    """Plots the share of the measured read bandwidth that a pass of the fewest rows reaches."""
    def draw(axes):
        names = [one.name for one in series]
        shares = [100 * one.gigabytes(one.rows[0]) / one.read_gb for one in series]
        axes.barh(names, shares, height=0.55, color=[COLOURS[i % len(COLOURS)] for i in range(len(series))])
        for i, (one, share) in enumerate(zip(series, shares)):
            beside = share + 1 if share < 60 or share > 99 else 102  # keeps the label off the dotted line
            axes.text(beside, i, f"{share:.0f} %: {one.gigabytes(one.rows[0]):.1f} of {one.read_gb:.1f} GB/s",
                      va="center")
        axes.axvline(100, color=INK, linewidth=1, linestyle=":")
        axes.set_xlim(0, max(145, max(shares) + 45))
        axes.set_xlabel("percent of a plain read of the same bytes")
        axes.invert_yaxis()

    return figure_svg(draw, height=0.9 + 0.55 * len(series))


def table(series):
    rows = sorted({r for one in series for r in one.rows})
    head = "".join(f"<th>{html.escape(one.name)}<br>ms (ratio)</th>" for one in series)
    lines = []
    for r in rows:
        cells = "".join(f"<td>{one.passes[r]:.2f} ({one.ratio(r):.2f})</td>" if r in one.passes else "<td></td>"
                        for one in series)
        lines.append(f"<tr><td>{r}</td>{cells}</tr>")
    return f'<div class="scroll"><table><tr><th>rows</th>{head}</tr>{"".join(lines)}</table></div>'


def section(title, body, caption):
    return f"<h2>{title}</h2><figure>{body}<figcaption>{caption}</figcaption></figure>"


def page(series, machine):
    contexts = sorted({one.context for one in series})
    about = f"Behind {' or '.join(map(str, contexts))} cached tokens. {html.escape(machine)}"
    parts = [section("Milliseconds of one pass", curves(series, lambda s, r: s.passes[r], "ms"),
                     "Axes are logarithmic, figures medians. Flat is free: the pass costs what one token costs."),
             section("Cost against one row", curves(series, lambda s, r: s.ratio(r), "times the fewest rows"),
                     "Verifying so many drafted tokens at once, in units of a plain step.")]
    streaming = [one for one in series if one.streamed_bytes]
    if streaming:
        parts.append(section("Weights streamed by a pass of the fewest rows", bandwidth_bars(streaming),
                             "Dotted: what the same threads reached in the same run when they did nothing but read."))
    parts.append("<h2>Figures</h2>" + table(series))
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
            f'content="width=device-width"><title>Outrider: passes by rows</title><style>{STYLE}</style></head><body>'
            f"<h1>What a pass costs by its rows</h1><p>{about}</p>{''.join(parts)}</body></html>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="[NAME=]FILE")
    parser.add_argument("--output", required=True)
    parser.add_argument("--machine", default="", help="a sentence about machine, commit and date")
    options = parser.parse_args()
    series = [one for argument in options.files for one in load(argument)]
    pathlib.Path(options.output).write_text(page(series, options.machine), encoding="utf-8")


if __name__ == "__main__":
    main()
