#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that this machine gives the log-probabilities that another machine gave. It scores 10,000 tokens of a model with
each kernel table of this machine that has portable bits, and compares a hash of all log-probabilities with the kept one.

Usage: tools/check_portable_bits.py OUTRIDER MODEL.gguf [TABLE...]"""

import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

TABLES = ("avx2_portable", "avx512", "neon", "i8mm")
TOKENS = 10_000
CHARACTERS = 4_500  # of a text
LICENSE = pathlib.Path(__file__).parent.parent / "LICENSE"
# By the hash of the model's file: SmolLM2-135M-Instruct.Q4_1.gguf of QuantFactory.
KEPT = {"b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53":
        "805f67123b28f27e40fa6653f174ae1402e6f41a6006257ba3a0a06125765f8a"}


def texts():
    """Texts of about 1,000 tokens, which begin at different paragraphs of the licence: an emulator computes attention to long
    texts slowly."""
    paragraphs = LICENSE.read_text().split("\n\n")
    for first in range(len(paragraphs)):
        yield "\n\n".join(paragraphs[first:] + paragraphs[:first])[:CHARACTERS]


def hash_of(outrider, model, table):
    """The hash of the log-probabilities and the number of tokens; None where the machine has no such table."""
    numbers, tokens = hashlib.sha256(), 0
    for text in texts():
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            run = subprocess.run([outrider, "score", model, "--text-file", file.name, "--kernels", table, "--json", "--device",
                                  "cpu"], capture_output=True, text=True, check=False)
        if run.returncode == 2:
            return None, 0
        if run.returncode != 0:
            sys.exit(run.stderr)
        result = json.loads(run.stdout)
        numbers.update(json.dumps(result["logprobs"][1:]).encode())
        tokens += len(result["token_ids"])
        print(f"{table}: {tokens} of {TOKENS} tokens, so far {numbers.copy().hexdigest()}", file=sys.stderr)
        if tokens >= TOKENS:
            return numbers.hexdigest(), tokens
    sys.exit("check_portable_bits: the licence is too short")


def main() -> int:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    outrider, model, *tables = sys.argv[1:]
    kept = KEPT.get(hashlib.sha256(pathlib.Path(model).read_bytes()).hexdigest())
    differing = 0
    for table in tables or TABLES:
        found, tokens = hash_of(outrider, model, table)
        if not found:
            print(f"{table}: not on this machine")
            continue
        verdict = "no hash is kept for this model" if not kept else "as kept" if found == kept else f"DIFFERS from {kept}"
        differing += kept is not None and found != kept
        print(f"{table}: {tokens} tokens, {found}, {verdict}", flush=True)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
