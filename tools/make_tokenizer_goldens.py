#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/tokenizer: tiny tokenizers of every family, texts, and the ids of the `tokenizers` package.

usage: make_tokenizer_goldens.py tests/data/tokenizer
"""

import json
import sys
from pathlib import Path

from tokenizer_families import build_families, texts

VOCAB_SIZE = 560
TEXTS = 220


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    samples = [text for text in texts(TEXTS * 2, seed=11) if len(text) < 60][:TEXTS]
    (directory / "texts.json").write_text(json.dumps(samples, separators=(",", ":")) + "\n")
    for name, tokenizer in build_families(VOCAB_SIZE).items():
        family = directory / name
        family.mkdir(exist_ok=True)
        compact = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
        (family / "tokenizer.json").write_text(compact + "\n")
        lines = [" ".join(str(token) for token in encoding.ids) for encoding in tokenizer.encode_batch(samples)]
        (family / "ids.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
