# SPDX-License-Identifier: Apache-2.0
"""A run is what was measured, where, when, and by which commands. It is a file bench/runs/NAME.json.

- `machine` is a name, or several, of the table of machines in docs/reference/performance.md.
- `date` is YYYY-MM-DD. `commit` is the measured program; for runs before 2026-11-30 it first showed the figures.
- `commands` are texts. There is none where the page explains how the figures were made.
- `columns` have a name each, and the format of their numbers as Python writes it ("g" if there is none).
- `rows` are lists of cells, which are numbers (medians) or texts.
- `plot` is optional: kind (lines over the first column, or bars of one column), title, and columns by name.
"""

import datetime
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = ROOT / "bench" / "runs"
KEYS = {"machine", "date", "commit", "commands", "columns", "rows"}
# By words of /proc/cpuinfo, the first that has all of them. Texts of runs call a machine by this name.
MACHINES = [({"GenuineIntel", "amx_int8"}, "AMX"), ({"AuthenticAMD", "avx512_vp2intersect"}, "Zen 5"),
            ({"AuthenticAMD", "avx512_bf16"}, "Zen 4"), ({"AuthenticAMD", "avx2", "vaes"}, "Zen 3"), ({"AuthenticAMD", "avx2"}, "Zen 2")]


def read_run(name):
    """Raises SystemExit that says what is wrong with the file."""
    path = RUNS / f"{name}.json"
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        sys.exit(f"{path.relative_to(ROOT)}: {error}")
    if lacking := KEYS - run.keys():
        sys.exit(f"{path.relative_to(ROOT)}: expected the keys {', '.join(sorted(KEYS))}, found no {', '.join(sorted(lacking))}")
    if wrong := [row for row in run["rows"] if len(row) != len(run["columns"])]:
        sys.exit(f"{path.relative_to(ROOT)}: expected {len(run['columns'])} cells in each row, found {wrong[0]}")
    return run


def cell_text(value, style):
    return value if isinstance(value, str) else "" if value is None else format(value, style)


def table_lines(columns, rows):
    """The lines of a Markdown table."""
    styles = [column.get("format", "g") for column in columns]
    texts = [[column["name"] for column in columns], ["---"] * len(columns)]
    texts += [[cell_text(value, style) for value, style in zip(row, styles, strict=True)] for row in rows]
    return ["|" + "|".join(f" {text} " if text else " " for text in row).replace(" --- ", "---") + "|" for row in texts]


def this_machine():
    """Raises SystemExit where the table of machines has no name for this processor."""
    words = set(pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    for needed, name in MACHINES:
        if needed <= words:
            return name
    sys.exit("run_record: this machine has no name; give it one in bench/run_record.py and docs/reference/performance.md")


def write_run(path, columns, rows, commands=None, machine=None):
    """Records figures that were measured just now. `path` is a file; the command is this program's, if none is given, and
    the machine is named by its processor."""
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"], check=True,
                            capture_output=True, text=True).stdout.strip()
    path = pathlib.Path(path)
    plot = json.loads(path.read_text(encoding="utf-8")).get("plot") if path.exists() else None
    run = {"machine": machine or this_machine(), "date": datetime.date.today().isoformat(), "commit": commit,
           "commands": [" ".join(sys.argv)] if commands is None else commands, "columns": columns, "rows": rows}
    dump_run(path, run | ({"plot": plot} if plot else {}))


def dump_run(path, run):
    """Writes one line for each column and row, so that changes read well."""
    lines = []
    for key, value in run.items():
        if isinstance(value, list) and key in ("columns", "rows", "commands"):
            inner = ",\n".join("    " + json.dumps(item, ensure_ascii=False) for item in value)
            lines.append(f"  {json.dumps(key)}: [\n{inner}\n  ]" if value else f"  {json.dumps(key)}: []")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    pathlib.Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
