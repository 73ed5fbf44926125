#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what `outrider inspect` says of the configurations of public models, for lab/2026-11-27_families.md.

usage: inspect_public_configs.py build/release/bin/outrider
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

CONFIGS = Path(__file__).parent.parent / "tests/data/formats/public_configs.json"


def result(program, config):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        run = subprocess.run([program, "inspect", folder, "--json"], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return run.stderr.strip().removeprefix("outrider: config.json: ").split("; supported")[0]
    read = json.loads(run.stdout)["config"]
    return f"{read['family']}: {read['layer_count']} layers, {read['head_count']} heads of {read['head_dim']}, {read['kv_head_count']} for keys"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("| model | found in | `outrider inspect` |\n|---|---|---|")
    for entry in json.loads(CONFIGS.read_text()):
        source = entry["source"].split("@")[0]
        print(f"| {entry['name']} | {source} | {result(sys.argv[1], entry['config'])} |")


if __name__ == "__main__":
    main()
