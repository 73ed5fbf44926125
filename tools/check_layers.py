#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a source folder includes a folder of its own or a higher rank. Usage: tools/check_layers.py"""

import pathlib
import re
import sys

RANKS = {
    "asio": 0, "base": 0,
    "config": 1, "device": 1, "page": 1, "text": 1,
    "tensor": 2, "grammar": 2,
    "formats": 3, "kernels": 3,
    "kv": 4, "sampling": 4,
    "models": 5, "speculation": 5,
    "heads": 6,
    "drafters": 7,
    "engine": 8, "training": 9,
    "load": 9, "server": 9,
    "cli": 10,
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# Heavy headers and the folders that may include them.
HEAVY = {"torch/": {"training"}, "CLI/": {"cli", "training"}, "nlohmann/": {"cli", "config", "grammar", "load", "server", "training"}, "boost/": {"asio", "load", "server"}}
TEST_HEADERS = {"fake_head.h", "recurrent_test_data.h"}  # which tests alone include
HEAVY_INCLUDE = re.compile(r"^\s*#\s*include\s+<((?:torch|CLI|nlohmann|boost)/[^>]+)>", re.MULTILINE)


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    problems = []
    files = sorted(path for path in (root / "src").rglob("*") if path.suffix in {".h", ".cc", ".inc"})
    for path in files:
        folder = path.relative_to(root / "src").parts[0]
        if folder not in RANKS:
            problems.append(f"{path.relative_to(root)}: folder '{folder}' has no rank")
            continue
        text = path.read_text(encoding="utf-8")
        for include in INCLUDE.findall(text):
            target = include.split("/")[0]
            if target == "outrider":
                continue
            if target not in RANKS:
                problems.append(f"{path.relative_to(root)}: '{include}' is not spelled from src/")
            elif target != folder and RANKS[target] >= RANKS[folder]:
                problems.append(f"{path.relative_to(root)}: rank {RANKS[folder]} includes rank {RANKS[target]}: {include}")
        for include in HEAVY_INCLUDE.findall(text):
            allowed = next(folders for prefix, folders in HEAVY.items() if include.startswith(prefix))
            if folder not in allowed and not path.stem.endswith(("_test", "_test_data")) and path.name not in TEST_HEADERS:
                problems.append(f"{path.relative_to(root)}: may not include <{include}>")
    for path in sorted((root / "include").rglob("*.h")):
        for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if not include.startswith("outrider/"):
                problems.append(f"{path.relative_to(root)}: a public header includes '{include}'")
    for problem in problems:
        print(problem)
    print(f"check_layers: {len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
