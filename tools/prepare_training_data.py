#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the training records into token files for outrider-train.

Writes OUT/train/<domain>.u16 and OUT/heldout/<domain>.u16: token ids as little-endian uint16, every document followed
by <|endoftext|>. Records marked "heldout" go to heldout/ only. OUT/prompts/<domain>.u16 holds prompts cut from training
records in the same format, for `outrider-train lm --distill`.

    python tools/prepare_training_data.py --data TEXT --tokenizer models/outrider-small/tokenizer.json \
        --out build/training-data
"""

import argparse
import pathlib
import random

import numpy as np
from tokenizers import Tokenizer

from training_corpus import DOMAINS, END_OF_TEXT, documents, heldout_records, prompts, train_records

BATCH_DOCUMENTS = 512
PROMPT_SEED = 1


def write_texts(texts_of_records, tokenizer: Tokenizer, path: pathlib.Path) -> int:
    """Tokenizes lists of texts in batches and writes them to `path`; returns the number of tokens."""
    end_of_text = tokenizer.token_to_id(END_OF_TEXT)
    total = 0
    with path.open("wb") as out:

        def flush(texts: list[str]) -> int:
            count = 0
            for encoding in tokenizer.encode_batch(texts, add_special_tokens=False):
                np.asarray(encoding.ids + [end_of_text], dtype="<u2").tofile(out)
                count += len(encoding.ids) + 1
            return count

        pending: list[str] = []
        for texts in texts_of_records:
            pending += texts
            if len(pending) >= BATCH_DOCUMENTS:
                total += flush(pending)
                pending = []
        total += flush(pending)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder that holds train/")
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True, help="tokenizer.json")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write train/ and heldout/ to")
    args = parser.parse_args()

    tokenizer = Tokenizer.from_file(str(args.tokenizer))
    if tokenizer.get_vocab_size() > 1 << 16:
        raise SystemExit(f"a vocabulary of at most 65536 tokens is expected, {args.tokenizer} has more")
    for folder in ("train", "heldout", "prompts"):
        (args.out / folder).mkdir(parents=True, exist_ok=True)
    for domain in DOMAINS:
        rng = random.Random(PROMPT_SEED)
        outputs = {
            "train": (documents(record) for _, record in train_records(args.data, domain)),
            "heldout": (documents(record) for _, record in heldout_records(args.data, domain)),
            "prompts": (prompts(record, domain, rng) for _, record in train_records(args.data, domain)),
        }
        for folder, texts in outputs.items():
            path = args.out / folder / f"{domain}.u16"
            print(f"{path}: {write_texts(texts, tokenizer, path)} tokens", flush=True)


if __name__ == "__main__":
    main()
