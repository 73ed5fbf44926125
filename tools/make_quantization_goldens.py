#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small quantised matrices as checkpoints of the Hugging Face Hub hold them, and what they mean.

Usage: make_quantization_goldens.py [tests/data/quantization]
Needs: torch, transformers, compressed-tensors, safetensors, numpy.

<case>.safetensors holds the parts of a matrix "m" and "expected", its numbers as F64: scale * (code - zero) of the
codes that were packed, or the decoding of torch (FP8) and of transformers (MXFP4).
"""

import pathlib
import sys

import numpy as np
import torch
from quantized_formats import awq_parts, by_block, gptq_parts, meaning, packed_parts
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

ROWS, COLS, GROUP = 16, 64, 32
RANDOM = np.random.default_rng(20)
LATER = np.random.default_rng(21)  # of cases that came later


def scales(groups, dtype):
    return torch.from_numpy(RANDOM.uniform(0.002, 0.02, (ROWS, groups))).to(dtype)


def integers(pack, bits, symmetric, group=GROUP, dtype=torch.float16, lowest_zero=0, act_order=False, **options):
    groups = COLS // group
    codes = RANDOM.integers(0, 2**bits, (ROWS, COLS))
    zeros = RANDOM.integers(lowest_zero, 2**bits, (ROWS, groups))
    if symmetric:
        zeros[:] = 2 ** (bits - 1)
    scale = scales(groups, dtype)
    group_of = np.arange(COLS) // group
    if act_order:
        group_of = RANDOM.permutation(group_of)
    parts = pack(codes, zeros, scale, group_of, bits=bits, **options)
    return {"m" + part: x for part, x in parts.items()} | {"expected": meaning(codes, zeros, scale, group_of)}


def gptq(bits, symmetric, version=1, **options):
    return integers(gptq_parts, bits, symmetric, lowest_zero=2 - version, version=version, **options)


def awq():
    return integers(lambda codes, zeros, scale, group_of, bits: awq_parts(codes, zeros, scale), 4, symmetric=False)


def pack_quantized(bits, symmetric, dtype=torch.bfloat16, **options):
    return integers(packed_parts, bits, symmetric, dtype=dtype, **options)


def int_quantized():
    codes = torch.from_numpy(RANDOM.integers(-128, 128, (ROWS, COLS))).to(torch.int8)
    scale = scales(1, torch.bfloat16)
    return {"m.weight": codes, "m.weight_scale": scale, "expected": codes.double() * scale.double()}


def float8(part, scale, rows=ROWS, cols=COLS, block=None, random=RANDOM):
    numbers = torch.from_numpy(random.normal(0, 60, (rows, cols))).to(torch.float8_e4m3fn)
    wide = by_block(scale, (rows, cols), block) if block else scale
    return {"m.weight": numbers, part: scale, "expected": numbers.double() * wide.double()}


def mxfp4():
    blocks = torch.from_numpy(RANDOM.integers(0, 256, (2, 8, 2, 16)).astype(np.uint8))
    exponents = torch.from_numpy(RANDOM.integers(110, 135, (2, 8, 2)).astype(np.uint8))
    # transformers gives [experts, columns, rows].
    expected = convert_moe_packed_tensors(blocks, exponents, dtype=torch.bfloat16).transpose(1, 2)
    return {"m_blocks": blocks, "m_scales": exponents, "expected": expected.double()}


def nvfp4(factor, numbers, is_inverse, rows=16, cols=128):
    codes = LATER.integers(0, 16, (rows, cols))
    group_scales = torch.from_numpy(LATER.uniform(1, 448, (rows, cols // 16))).to(torch.float8_e4m3fn)
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])[codes]
    stored = torch.tensor(2700.0 if is_inverse else 0.00037)
    of_all = 1 / stored.double() if is_inverse else stored.double()
    return {
        numbers: torch.from_numpy((codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)),
        "m.weight_scale": group_scales,
        factor: stored.reshape(1) if is_inverse else stored,
        "expected": torch.from_numpy(values) * group_scales.double().repeat_interleave(16, dim=1) * of_all,
    }


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data/quantization")
    out.mkdir(parents=True, exist_ok=True)
    uniform = torch.from_numpy(RANDOM.uniform(0.0002, 0.002, (3, 5))).float()
    later_scales = torch.from_numpy(LATER.uniform(0.002, 0.02, (ROWS, 1))).float()
    cases = {
        "gptq_4": gptq(4, symmetric=True),
        "gptq_4_zeros": gptq(4, symmetric=False),
        "gptq_4_act_order": gptq(4, symmetric=False, act_order=True),
        "gptq_8": gptq(8, symmetric=True),
        "gptq_8_zeros": gptq(8, symmetric=False),
        "gptq_v2_4_zeros": gptq(4, symmetric=False, version=2),
        "awq_4": awq(),
        "packed_4": pack_quantized(4, symmetric=True),
        "packed_4_zeros": pack_quantized(4, symmetric=False, dtype=torch.float16),
        "packed_4_channel": pack_quantized(4, symmetric=True, group=COLS, dtype=torch.float32),
        "packed_4_act_order": pack_quantized(4, symmetric=True, act_order=True),
        "packed_8": pack_quantized(8, symmetric=True),
        "packed_8_zeros": pack_quantized(8, symmetric=False),
        "int_8": int_quantized(),
        "fp8_block": float8("m.weight_scale_inv", uniform, rows=20, cols=36, block=8),
        "fp8_channel": float8("m.weight_scale", scales(1, torch.bfloat16)),
        "fp8_tensor": float8("m.weight_scale", torch.tensor([0.0031])),
        "mxfp4": mxfp4(),
        "fp8_wide": float8("m.weight_scale", later_scales, cols=256, random=LATER),
        "nvfp4_packed": nvfp4("m.weight_global_scale", "m.weight_packed", is_inverse=True),
        "nvfp4_modelopt": nvfp4("m.weight_scale_2", "m.weight", is_inverse=False),
    }
    for name, parts in cases.items():
        save_file({part: tensor.contiguous() for part, tensor in parts.items()}, out / f"{name}.safetensors")


if __name__ == "__main__":
    main()
