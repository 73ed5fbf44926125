#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perplexity of each weight type under each kernel table, beside the perplexity of the reference table: sums in double
precision over the same weights, f32 cache. Plain text files; a few thousand tokens take minutes, because the reference
is scalar.

    tools/compare_perplexity.py build/release/bin/outrider TEXT... [--model DIR]
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import tempfile

WEIGHTS = ("f32", "bf16", "q8_0", "q8", "q4")  # weight types of --weights
FILES = ("q6_k", "q5_1", "q5_0", "q4_1", "q4_k", "q4_0", "iq4_nl", "mxfp4")  # types of files that `quantize` writes first


def mean_loss(program, model, texts, weights, kernels, cache):
    """Returns nats per token and the number of tokens; each text is scored on its own."""
    logprobs = []
    for text in texts:
        command = [program, "score", model, "--text-file", text, "--json", "--weights", weights, "--kv-cache-type", cache]
        environment = {**os.environ, "OUTRIDER_FORCE_KERNELS": kernels}
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        logprobs += [value for value in json.loads(done.stdout)["logprobs"] if value is not None]
    return -sum(logprobs) / len(logprobs), len(logprobs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--model", default=str(pathlib.Path(__file__).parent.parent / "models" / "outrider-small"))
    parser.add_argument("--kernels", default="avx2,avx512,amx", help="tables to compare")
    options = parser.parse_args()
    tables = options.kernels.split(",")
    with tempfile.TemporaryDirectory() as folder:
        models = [(weights, options.model, weights) for weights in WEIGHTS]
        for kind in FILES:
            path = str(pathlib.Path(folder) / f"{kind}.gguf")
            subprocess.run([options.program, "quantize", options.model, path, "--type", kind], check=True,
                           capture_output=True)
            models.append((kind, path, "auto"))
        for name, model, weights in models:
            exact, tokens = mean_loss(options.program, model, options.texts, weights, "reference", "f32")
            line = [f"{name:5} perplexity {math.exp(exact):8.3f} over {tokens} tokens"]
            for table in tables:
                loss, _ = mean_loss(options.program, model, options.texts, weights, table, "auto")
                line.append(f"{table} {100 * math.expm1(loss - exact):+.3f}%")
            print("   ".join(line), flush=True)


if __name__ == "__main__":
    main()
