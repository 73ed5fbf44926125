#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of measurements in README.md and docs/reference/ from the runs in bench/runs/.

    bench/run_pages.py              # tables; what a page says between its marks is replaced
    bench/run_pages.py --plots      # also the plots in docs/images/runs (apt-get install python3-matplotlib)
    bench/run_pages.py --check      # exits with 1 where a page or a plot is not what the runs say

A page has `<!-- run: NAME -->` where bench/runs/NAME.json goes, and `<!-- run: NAME table -->` for the table only.
bench/run_record.py says what a run is.
"""

import argparse
import hashlib
import pathlib
import re
import sys

from run_record import RUNS, cell_text, read_run, table_lines

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["README.md", "docs/reference/performance.md", "docs/reference/results.md"]
PLOTS = ROOT / "docs" / "images" / "runs"
MARK = re.compile(r"<!-- run: (\w+)( table)? -->\n.*?<!-- end of run -->", re.DOTALL)
COLOURS = ["#1a7f37", "#0969da", "#bf8700", "#8250df", "#cf222e", "#6e7781"]


def run_text(name, run):
    """Returns commands, table and plot of a run, and the line that says where its figures come from."""
    parts = []
    if run["commands"]:
        parts.append("\n".join("    " + line for command in run["commands"] for line in command.splitlines()))
    parts.append("\n".join(table_lines(run["columns"], run["rows"])))
    if "plot" in run:
        parts.append(f"![{run['plot']['title']}](../images/runs/{name}.svg)")
    parts.append(f"<sub>{run['machine']}, {run['date']}, commit {run['commit'][:8]}</sub>")
    return "\n\n".join(parts)


def page_text(page):
    """The page with the figures of today's runs."""

    def replaced(mark):
        name, only_table = mark.groups()
        run = read_run(name)
        text = "\n".join(table_lines(run["columns"], run["rows"])) if only_table else run_text(name, run)
        return f"<!-- run: {name}{only_table or ''} -->\n\n{text}\n\n<!-- end of run -->"

    return MARK.sub(replaced, page.read_text(encoding="utf-8"))


def number(value):
    """The first number of a cell."""
    return float(re.search(r"-?\d+(\.\d+)?", str(value))[0])


def label(row, column):
    """The words of a row before a column, without Markdown's marks."""
    words = [cell for cell in row[:column] if isinstance(cell, str) and re.search("[A-Za-z]", cell)]
    return re.sub(r"[`*]", "", ", ".join(words))


def digest(name):
    return hashlib.sha256((RUNS / f"{name}.json").read_bytes()).hexdigest()[:16]


def draw(name, run):
    """Draws the columns of a run: lines over the first column, or bars of one column by row."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    plot = run["plot"]
    columns = [next(i for i, column in enumerate(run["columns"]) if column["name"] == wanted) for wanted in plot["columns"]]
    matplotlib.rcParams.update({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 11})
    figure, axes = pyplot.subplots(figsize=(8, 0.6 + 0.42 * len(run["rows"]) if plot["kind"] == "bars" else 4))
    if plot["kind"] == "bars":
        rows = run["rows"][::-1]
        values = [number(row[columns[0]]) for row in rows]
        style = run["columns"][columns[0]].get("format", "g")
        bars = axes.barh([label(row, columns[0]) for row in rows], values, color=COLOURS[0])
        axes.bar_label(bars, [cell_text(row[columns[0]], style) for row in rows], padding=4)
        axes.margins(x=0.12)
    else:
        places = [number(row[0]) for row in run["rows"]]
        for colour, column in zip(COLOURS, columns):
            axes.plot(places, [number(row[column]) for row in run["rows"]], marker="o", color=colour,
                      label=run["columns"][column]["name"].replace("`", ""))
        axes.set_xscale("log", base=2)
        axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.set_ylim(bottom=0)
        axes.set_xlabel(run["columns"][0]["name"])
        axes.legend(frameon=False)
    axes.set_title(plot["title"], loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    PLOTS.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOTS / f"{name}.svg", bbox_inches="tight", facecolor="white",
                   metadata={"Date": None, "Description": f"run {digest(name)}"})
    pyplot.close(figure)


def plot_is_current(name):
    plot = PLOTS / f"{name}.svg"
    return plot.exists() and f"run {digest(name)}" in plot.read_text(encoding="utf-8")


def stale():
    """Names everything that does not show what the runs say."""
    names = sorted(path.stem for path in RUNS.glob("*.json"))
    pages = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
    yield from (page for page, text in pages.items() if text != page_text(ROOT / page))
    yield from (f"docs/images/runs/{name}.svg (--plots)" for name in names
                if "plot" in read_run(name) and not plot_is_current(name))
    shown = {mark[1] for text in pages.values() for mark in MARK.finditer(text)}
    yield from (f"bench/runs/{name}.json, which no page shows" for name in names if name not in shown)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plots", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        found = list(stale())
        for place in found:
            print(f"run_pages: expected bench/run_pages.py to change nothing, it would change {place}", file=sys.stderr)
        return 1 if found else 0
    for page in PAGES:
        (ROOT / page).write_text(page_text(ROOT / page), encoding="utf-8")
    if options.plots:
        for path in sorted(RUNS.glob("*.json")):
            run = read_run(path.stem)
            if "plot" in run and not plot_is_current(path.stem):
                draw(path.stem, run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
