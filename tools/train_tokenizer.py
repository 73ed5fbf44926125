#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the byte-level BPE of the built-in models and writes it in Hugging Face layout.

Reads only records with "split": "train". Every domain contributes the same share of text as it has in the training
mixture, so that novels (two thirds of the bytes) do not decide what becomes a token.

    python tools/train_tokenizer.py --data TEXT --out models/outrider-small
"""

import argparse
import json
import pathlib

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from training_corpus import (
    CHAT_TEMPLATE,
    DOMAINS,
    END_OF_TEXT,
    IM_END,
    IM_START,
    PAD,
    record_texts,
    train_records,
)

MIXTURE = {"prose": 0.25, "stories": 0.25, "code": 0.20, "instruct": 0.15, "math": 0.15}
CHUNK_CHARACTERS = 20_000


def sampled_texts(data: pathlib.Path, total_characters: int):
    """Yields text until each domain has given its share, spread evenly over all of the domain's files."""
    for domain in DOMAINS:
        chunks = []
        for _, record in train_records(data, domain):
            for text in record_texts(record):
                chunks += [text[i : i + CHUNK_CHARACTERS] for i in range(0, len(text), CHUNK_CHARACTERS)]
        quota = total_characters * MIXTURE[domain]
        available = sum(len(chunk) for chunk in chunks)
        keep = min(1.0, quota / available)
        taken = 0.0
        for chunk in chunks:
            taken += keep
            if taken >= 1.0:
                taken -= 1.0
                yield chunk


def train(data: pathlib.Path, vocab_size: int, total_characters: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    # Single digits, then the GPT-2 split, as in SmolLM2 and StarCoder2; every engine knows this pre-tokenizer.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT, IM_START, IM_END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sampled_texts(data, total_characters), trainer)
    return tokenizer


def save(tokenizer: Tokenizer, out: pathlib.Path, max_length: int) -> None:
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"))
    special = [END_OF_TEXT, IM_START, IM_END, PAD]
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": False,
        "add_eos_token": False,
        "bos_token": None,
        "eos_token": END_OF_TEXT,
        "pad_token": PAD,
        "unk_token": None,
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_length,
        "added_tokens_decoder": {
            str(tokenizer.token_to_id(token)): {
                "content": token,
                "lstrip": False,
                "normalized": False,
                "rstrip": False,
                "single_word": False,
                "special": True,
            }
            for token in special
        },
        "chat_template": CHAT_TEMPLATE,
    }
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    generation = {
        "do_sample": False,
        "eos_token_id": [tokenizer.token_to_id(END_OF_TEXT), tokenizer.token_to_id(IM_END)],
        "pad_token_id": tokenizer.token_to_id(PAD),
    }
    (out / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder that holds train/")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write the tokenizer files to")
    parser.add_argument("--vocab-size", type=int, default=4096)
    parser.add_argument("--characters", type=int, default=30_000_000, help="text to learn from, all domains together")
    parser.add_argument("--max-length", type=int, default=1024, help="context length to announce")
    args = parser.parse_args()
    save(train(args.data, args.vocab_size, args.characters), args.out, args.max_length)


if __name__ == "__main__":
    main()
