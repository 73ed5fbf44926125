#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Outrider's tokenizers with the `tokenizers` package on small tokenizers of every family.

usage: compare_tokenizers.py build/release/bin/tokenizer_dump [--count 20000] [--seed 7] [--family NAME]
"""

import argparse
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

from tokenizer_families import ADDED, SPACE_MARK, build_families, texts


EXACT_BYTE_LEVEL = ("gpt2", "llama3", "gpt4o", "deepseek_coder", "deepseek_llm", "deepseek_v3", "starcoder", "falcon",
                    "merged_with_previous", "merged_with_next")


def is_reversible(name, text):
    """Whether decoding must give the text back, because no rule of the family loses a part of it."""
    if any(content in text for content in ("<|im", "<mask>", "<tool>", "<s>", "</s>", "<unk>")):
        return False
    if name == "qwen2":
        return unicodedata.normalize("NFC", text) == text
    if name in ("llama2_prepend", "metaspace_never", "gemma"):
        # Every section between added tokens gets a separate prefix; U+2581 is decoded to a space.
        return SPACE_MARK not in text and not any(token.content in text for token in ADDED)
    return name in EXACT_BYTE_LEVEL


# Families with tables of Unicode that follow its version; new characters are new to one side only.
BY_UNICODE_VERSION = ("nfkc_lowercase", "nfkd_sentence_piece", "unigram_normalized")


def compare(name, tokenizer, dump, samples):
    if name in BY_UNICODE_VERSION:
        samples = [text for text in samples if not any(unicodedata.category(character) == "Cn" for character in text)]
    with tempfile.TemporaryDirectory() as directory:
        tokenizer.save(str(Path(directory) / "tokenizer.json"))
        result = subprocess.run([dump, directory], input="".join(text + "\0" for text in samples).encode(),
                                capture_output=True, check=False)
    if result.returncode != 0:
        print(f"{name}: {result.stderr.decode().strip()}")
        return 1
    lines = result.stdout.decode().splitlines()
    if len(lines) != len(samples):
        print(f"{name}: {len(lines)} lines for {len(samples)} texts")
        return 1
    different = 0
    for text, line, expected in zip(samples, lines, tokenizer.encode_batch(samples)):
        ids, round_trip = line.split("\t")
        found = [int(token) for token in ids.split()]
        lost = round_trip != "same" and is_reversible(name, text)
        if found != expected.ids or lost:
            different += 1
            if different <= 5:
                print(f"{name}: {text!r}\n  expected {expected.ids}\n  found    {found}{' (text lost)' if lost else ''}")
    print(f"{name}: {len(samples)} texts, {different} different")
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", help="the program tokenizer_dump")
    parser.add_argument("--count", type=int, default=20000, help="texts per family")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--family", help="only this one")
    options = parser.parse_args()
    samples = list(texts(options.count, options.seed))
    families = build_families()
    if options.family:
        families = {options.family: families[options.family]}
    different = sum(compare(name, tokenizer, options.dump, samples) for name, tokenizer in families.items())
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
