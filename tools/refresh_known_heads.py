#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/open/drafters/known_head_rows.h, the table of published drafters, from the Hub's API.

Usage: tools/refresh_known_heads.py [--endpoint URL] [--limit N] [--output FILE]

It searches the Hub for the words that names of drafters have. A repository is a row if its tags or name say its layout,
and its configuration (speculators_config.verifier) or its card (base_model) names one target. Rows of the table stay if
the Hub still has their repository. Rows of one target come in the order of their downloads.
"""

import argparse
import json
import pathlib
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "open" / "drafters" / "known_head_rows.h"
# Words in names and tags, the most telling first, and the layout as --speculative names it.
LAYOUTS = [("peagle", "peagle"), ("eagle3", "eagle3"), ("eagle", "eagle"), ("medusa", "medusa"), ("dspark", "dspark"), ("dflash", "dflash"),
           ("moaspec", "moa"), ("mtp", "mtp"), ("assistant", "assistant")]
SEARCHES = ["eagle3", "eagle", "speculator", "medusa", "dflash", "dspark", "MOASpec", "assistant"]
ROW = re.compile(r'KnownHead\{"([^"]+)", "([^"]+)", "([^"]+)"\}')
NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+$")


def ask(endpoint, path):
    """The answer to a request as JSON; None where there is no such thing."""
    try:
        with urllib.request.urlopen(f"{endpoint}{path}", timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code in (401, 403, 404):
            return None
        raise


def layout_of(model):
    folded = re.sub(r"[^a-z0-9]", "", " ".join([model["id"].split("/")[1], *model.get("tags", [])]).lower())
    return next((layout for word, layout in LAYOUTS if word in folded), None)


def target_of(endpoint, model):
    """The one model that the drafter was trained for; None where neither configuration nor card says it."""
    config = ask(endpoint, f"/{model['id']}/resolve/main/config.json") or {}
    verifier = config.get("speculators_config", {}).get("verifier", {}).get("name_or_path")
    base = (model.get("cardData") or {}).get("base_model")
    bases = [base] if isinstance(base, str) else base or []
    name = verifier or (bases[0] if len(bases) == 1 else None)
    return name if name and NAME.match(name) and name != model["id"] else None


def published(endpoint, limit):
    """Rows (target, repository, layout) with their downloads, of all searches."""
    rows = {}
    for word in SEARCHES:
        query = urllib.parse.urlencode({"search": word, "sort": "downloads", "limit": limit, "full": "true", "cardData": "true"})
        for model in ask(endpoint, f"/api/models?{query}") or []:
            layout = layout_of(model) if NAME.match(model.get("id", "")) else None
            if model["id"] in rows or layout is None or any("gguf" in tag for tag in model.get("tags", [])):
                continue
            if target := target_of(endpoint, model):
                rows[model["id"]] = ((target, model["id"], layout), model.get("downloads", 0))
    return rows


def text_of(rows):
    lines = [f'    KnownHead{{"{target}", "{repository}", "{layout}"}},' for target, repository, layout in rows]
    before, _, rest = TABLE.read_text(encoding="utf-8").partition("inline constexpr std::array kKnownHeadRows = {\n")
    after = rest[rest.index("};\n"):]
    return f"{before}inline constexpr std::array kKnownHeadRows = {{\n" + "\n".join(lines) + f"\n{after}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--endpoint", default="https://huggingface.co")
    parser.add_argument("--limit", type=int, default=200, help="answers of each search")
    parser.add_argument("--output", type=pathlib.Path, default=TABLE)
    options = parser.parse_args()
    endpoint = options.endpoint.rstrip("/")
    rows = published(endpoint, options.limit)
    if not rows:
        print(f"refresh_known_heads: {endpoint} lists no drafter; the table stays as it is", file=sys.stderr)
        return 1
    for row in ROW.findall(TABLE.read_text(encoding="utf-8")):
        if row[1] not in rows and ask(endpoint, f"/api/models/{row[1]}") is not None:
            rows[row[1]] = (row, 0)
    ordered = [row for row, _ in sorted(rows.values(), key=lambda entry: (entry[0][0].lower(), -entry[1], entry[0][1]))]
    options.output.write_text(text_of(ordered), encoding="utf-8")
    print(f"refresh_known_heads: {len(ordered)} drafters for {len({row[0] for row in ordered})} targets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
