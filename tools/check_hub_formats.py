#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares quantised checkpoints and checkpoints of torch.save() with transformers, and speculation with plain decoding.

usage: check_hub_formats.py OUTRIDER [--match TEXT]

A small random Llama, or gpt-oss for MXFP4, is quantised in each way, and transformers gets the numbers that this means by the definition of
the format. In f32, 64 greedy tokens and all log-probabilities agree as in check_families.py. With the weights as they
are stored, text is the same with and without drafts in every kernel table of this machine.
Needs torch, transformers, tokenizers, compressed-tensors, safetensors and numpy.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from check_families import PROMPT, STEPS, Mismatch, compare_greedy, make_model, outrider, save
from family_cases import FAMILIES
from make_model_goldens import make_tokenizer
from quantized_formats import awq_parts, by_block, gptq_parts, meaning, mxfp4_parts, packed_parts
from safetensors.torch import load_file, save_file

GROUP = 32
TABLES = ["reference", "avx2", "avx512", "avx512_bf16", "amx"]


def quantize(weight, bits, symmetric, dtype):
    """Codes, zeros and scales of groups of columns, rounded to nearest."""
    rows, cols = weight.shape
    groups = weight.double().numpy().reshape(rows, cols // GROUP, GROUP)
    greatest = 2**bits - 1
    low, high = np.minimum(groups.min(-1), 0), np.maximum(groups.max(-1), 0)
    if symmetric:
        high = np.maximum(high, -low)
        low = -high
    scale = torch.from_numpy((high - low) / greatest).to(dtype)
    steps = scale.double().numpy()
    zeros = np.clip(np.round(-low / steps), 1, greatest).astype(np.int64)
    if symmetric:
        zeros[:] = 2 ** (bits - 1)
    codes = np.clip(np.round(groups / steps[..., None]) + zeros[..., None], 0, greatest)
    return codes.astype(np.int64).reshape(rows, cols), zeros, scale


def grouped(pack, bits=4, symmetric=False, dtype=torch.float16, act_order=False, **options):
    def make(weight):
        group_of = np.arange(weight.shape[1]) // GROUP
        order = np.random.default_rng(3).permutation(weight.shape[1]) if act_order else np.arange(weight.shape[1])
        codes, zeros, scale = quantize(weight[:, order], bits, symmetric, dtype)
        back = np.argsort(order)
        codes, group_of = codes[:, back], group_of[back]
        return pack(codes, zeros, scale, group_of, bits=bits, **options), meaning(codes, zeros, scale, group_of)

    return make


def float8(weight):
    block = 16
    rows, cols = (-(-size // block) for size in weight.shape)
    padded = torch.zeros(rows * block, cols * block)
    padded[: weight.shape[0], : weight.shape[1]] = weight
    scale = padded.reshape(rows, block, cols, block).abs().amax((1, 3)) / 448
    wide = by_block(scale, weight.shape, block)
    numbers = (weight / wide).to(torch.float8_e4m3fn)
    # Such weights are held in bf16.
    return {".weight": numbers, ".weight_scale_inv": scale}, (numbers.float() * wide).to(torch.bfloat16)


def awq_of_groups(codes, zeros, scale, group_of, bits):
    return awq_parts(codes, zeros, scale)


PACKED = {"quant_method": "compressed-tensors", "format": "pack-quantized"}
FORMATS = {
    "gptq of 4 bits": ({"quant_method": "gptq", "bits": 4}, grouped(gptq_parts, symmetric=True)),
    "gptq of 4 bits with zeros and act-order": (
        {"quant_method": "gptq", "bits": 4}, grouped(gptq_parts, act_order=True)),
    "gptq of 8 bits": ({"quant_method": "gptq", "bits": 8}, grouped(gptq_parts, bits=8, symmetric=True)),
    "gptq_v2 with zeros": (
        {"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"}, grouped(gptq_parts, version=2)),
    "awq": ({"quant_method": "awq", "bits": 4, "version": "gemm"}, grouped(awq_of_groups)),
    "compressed-tensors of 4 bits with zeros": (PACKED, grouped(packed_parts)),
    "compressed-tensors of 8 bits": (PACKED, grouped(packed_parts, bits=8, symmetric=True, dtype=torch.bfloat16)),
    "fp8": ({"quant_method": "fp8", "weight_block_size": [16, 16]}, float8),
    "mxfp4": ({"quant_method": "mxfp4"}, mxfp4_parts),
}
FAMILY_OF = {"mxfp4": "gpt_oss"}


def write_quantized(directory, config, make):
    """Replaces the matrices of layers, or the experts, in a saved model. Returns the weights that transformers shall have instead."""
    tensors = load_file(directory / "model.safetensors")
    meant = {}
    ends = ("experts.gate_up_proj", "experts.down_proj") if make is mxfp4_parts else "_proj.weight"
    for name in [name for name in tensors if name.endswith(ends)]:
        parts, numbers = make(tensors.pop(name))
        meant[name] = numbers.float()
        module = name.removesuffix(".weight")
        tensors |= {module + part: tensor.contiguous() for part, tensor in parts.items()}
    save_file(tensors, directory / "model.safetensors")
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": config}))
    return meant


def write_torch(directory, model):
    (directory / "model.safetensors").unlink()
    torch.save(model.state_dict(), directory / "pytorch_model.bin")
    return {}


def check_tables(program, path, prompts):
    for table in TABLES:
        os.environ["OUTRIDER_FORCE_KERNELS"] = table
        try:
            report = outrider(program, "verify-lossless", path, "--prompts", prompts, "--speculative",
                              "ngram,max_draft_len=4", "--max-tokens", 24, "--ignore-eos", "--cache-dir", "none", "--json")
        except Mismatch as error:
            if "cannot run here" not in str(error):
                raise
            continue
        finally:
            del os.environ["OUTRIDER_FORCE_KERNELS"]
        if not report["identical"]:
            raise Mismatch(f"{table}: {report['difference']}")


def check_format(name, program):
    tokenizer, _ = make_tokenizer()
    family = next(family for family in FAMILIES if family.name == FAMILY_OF.get(name, "llama"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        prompts = Path(folder) / "prompts.jsonl"
        prompts.write_text(json.dumps({"prompt": "the tone of it, then the tone of it"}) + "\n")
        model = make_model(family, family.base)
        save(model, path, tokenizer)
        meant = write_quantized(path, *FORMATS[name]) if name in FORMATS else write_torch(path, model)
        model.load_state_dict(meant, strict=False)
        compare_greedy(model, program, path)
        check_tables(program, path, prompts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("outrider")
    parser.add_argument("--match", default="", help="only formats with this text in the name")
    options = parser.parse_args()
    failures = 0
    for name in [*FORMATS, "pytorch_model.bin"]:
        if options.match not in name:
            continue
        try:
            check_format(name, options.outrider)
            print(f"{name}: {STEPS} tokens after {len(PROMPT)} agree", flush=True)
        except Mismatch as error:
            failures += 1
            print(f"{name}: {error}", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
