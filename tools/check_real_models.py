#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real GGUF file beside transformers, which runs the same dequantised weights in f32: greedy tokens of prompts through
the model's own template, and the perplexity of a text. Needs torch, transformers, gguf and accelerate.

    tools/check_real_models.py build/release/bin/outrider MODEL.gguf [--quantize q8_0,q4_0] [--weights f32,auto]

Prompts: the first turns of --prompts (JSON Lines with "turns"), spread evenly over the file. A difference counts as a tie,
and ends the comparison of its prompt, where transformers' two log-probabilities differ by at most --tie."""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

WINDOW = 512  # tokens of text scored at a time


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def numerics(weights):
    """Options for weights of that type, with a KV cache as exact as they are."""
    return ["--weights", weights, "--kv-cache-type", "f32" if weights == "f32" else "auto"]


def load_peer(path):
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32, attn_implementation="eager")
    return torch, model.eval()


def compare_tokens(torch, peer, program, path, prompts, options, weights):
    """Returns the numbers of equal tokens, ties and other differences."""
    equal, ties, others = 0, [], []
    for prompt in prompts:
        ours = run(program, "generate", path, "--prompt-ids", ",".join(map(str, prompt)), "--max-tokens",
                   options.tokens, "--temperature", 0, "--ignore-eos", "--json", "--speculative", "none",
                   *numerics(weights))["token_ids"]
        with torch.no_grad():
            logits = peer(torch.tensor([prompt + ours[:-1]])).logits[0, len(prompt) - 1:].double()
        logprobs = logits.log_softmax(-1)
        best = logprobs.argmax(-1).tolist()
        for place, (mine, theirs) in enumerate(zip(ours, best)):
            if mine == theirs:
                equal += 1
                continue
            gap = (logprobs[place, theirs] - logprobs[place, mine]).item()
            (ties if gap <= options.tie else others).append((prompts.index(prompt), place, gap))
            break
    return equal, ties, others


def mean_loss(program, path, chunks, weights):
    losses = []
    for chunk in chunks:
        scores = run(program, "score", path, "--prompt-ids", ",".join(map(str, chunk)), "--json", *numerics(weights))
        losses += [-value for value in scores["logprobs"] if value is not None]
    return sum(losses) / len(losses)


def mean_peer_loss(torch, peer, chunks):
    losses = []
    for chunk in chunks:
        with torch.no_grad():
            logits = peer(torch.tensor([chunk])).logits[0, :-1]
        chosen = logits.gather(1, torch.tensor(chunk[1:])[:, None])[:, 0]
        losses += (logits.logsumexp(-1).double() - chosen.double()).tolist()
    return sum(losses) / len(losses)


def read_prompts(program, path, options):
    lines = [json.loads(line) for line in open(options.prompts, encoding="utf-8")]
    chosen = [lines[i * len(lines) // options.count] for i in range(options.count)]
    prompts = []
    for line in chosen:
        text = line["turns"][0][:options.prompt_chars]
        prompts.append(run(program, "tokenize", path, "--text", text, "--json")["token_ids"])
    return prompts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--prompts", default="../shared/data/prompts/spec_bench/question.jsonl")
    parser.add_argument("--text", help="a text file for the perplexity")
    parser.add_argument("--count", type=int, default=20, help="prompts")
    parser.add_argument("--prompt-chars", type=int, default=400, help="longer prompts are cut")
    parser.add_argument("--tokens", type=int, default=64, help="greedy tokens per prompt")
    parser.add_argument("--text-tokens", type=int, default=20000)
    parser.add_argument("--tie", type=float, default=1e-5)
    parser.add_argument("--weights", default="f32,auto", help="values of --weights to compare")
    parser.add_argument("--quantize", default="", help="types that `outrider quantize` makes of the model first")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        files = [options.model]
        for kind in filter(None, options.quantize.split(",")):
            files.append(pathlib.Path(folder) / f"{options.model.stem}-{kind}.gguf")
            subprocess.run([options.program, "quantize", options.model, files[-1], "--type", kind], check=True,
                           capture_output=True)
        for path in files:
            torch, peer = load_peer(path)
            prompts = read_prompts(options.program, path, options)
            chunks = []
            if options.text:
                ids = run(options.program, "tokenize", path, "--file", options.text, "--json")["token_ids"]
                ids = ids[:options.text_tokens]
                chunks = [ids[i:i + WINDOW] for i in range(0, len(ids) - 1, WINDOW)]
            theirs = mean_peer_loss(torch, peer, chunks) if chunks else 0
            for weights in options.weights.split(","):
                equal, ties, others = compare_tokens(torch, peer, options.program, path, prompts, options, weights)
                line = f"{path.name} --weights {weights}: {equal} tokens equal, ties {ties}, other differences {others}"
                if chunks:
                    ours = mean_loss(options.program, path, chunks, weights)
                    line += f"; perplexity {math.exp(ours):.4f}, transformers {math.exp(theirs):.4f}, " \
                            f"{100 * math.expm1(ours - theirs):+.4f} %"
                    wrong += abs(math.expm1(ours - theirs)) > 1e-3
                print(line, flush=True)
                wrong += len(others) if weights == "f32" else 0
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
