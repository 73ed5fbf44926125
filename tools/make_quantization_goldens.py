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
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

ROWS, COLS, GROUP = 16, 64, 32
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
RANDOM = np.random.default_rng(20)


def words(codes, bits, order=None):
    """Packs the last dimension, each number of a word at the next higher bits."""
    count = 32 // bits
    lines = codes.reshape(*codes.shape[:-1], -1, count).astype(np.uint64)
    packed = np.zeros(lines.shape[:-1], np.uint64)
    for place, index in enumerate(order or range(count)):
        packed |= lines[..., index] << np.uint64(bits * place)
    return torch.from_numpy(packed.astype(np.uint32).view(np.int32))


def scales(groups, dtype):
    return torch.from_numpy(RANDOM.uniform(0.002, 0.02, (ROWS, groups))).to(dtype)


def meaning(codes, zeros, scale, group_of):
    return torch.from_numpy((codes - zeros[:, group_of]).astype(np.float64)) * scale.double()[:, group_of]


def gptq(bits, symmetric, version, act_order=False):
    groups = COLS // GROUP
    codes = RANDOM.integers(0, 2**bits, (ROWS, COLS))
    low = 1 if version == 1 else 0
    zeros = np.full((ROWS, groups), 2 ** (bits - 1)) if symmetric else RANDOM.integers(low, 2**bits, (ROWS, groups))
    scale = scales(groups, torch.float16)
    group_of = np.arange(COLS) // GROUP
    if act_order:
        group_of = RANDOM.permutation(group_of)
    return {
        "m.qweight": words(codes, bits).T,
        "m.qzeros": words((zeros - low).T, bits),
        "m.scales": scale.T,
        "m.g_idx": torch.from_numpy(group_of.astype(np.int32)),
        "expected": meaning(codes, zeros, scale, group_of),
    }


def awq():
    groups = COLS // GROUP
    codes, zeros = RANDOM.integers(0, 16, (ROWS, COLS)), RANDOM.integers(0, 16, (ROWS, groups))
    scale = scales(groups, torch.float16)
    return {
        "m.qweight": words(codes.T, 4, AWQ_ORDER),
        "m.qzeros": words(zeros.T, 4, AWQ_ORDER),
        "m.scales": scale.T,
        "expected": meaning(codes, zeros, scale, np.arange(COLS) // GROUP),
    }


def pack_quantized(bits, symmetric, group, dtype=torch.bfloat16, act_order=False):
    half = 2 ** (bits - 1)
    groups = COLS // group
    codes = RANDOM.integers(-half, half, (ROWS, COLS))
    zeros = np.zeros((ROWS, groups), np.int64) if symmetric else RANDOM.integers(-half, half, (ROWS, groups))
    group_of = np.arange(COLS) // group
    if act_order:
        group_of = RANDOM.permutation(group_of)
    scale = scales(groups, dtype)
    parts = {
        "m.weight_packed": pack_to_int32(torch.from_numpy(codes).to(torch.int8), bits),
        "m.weight_scale": scale,
        "m.weight_shape": torch.tensor([ROWS, COLS]),
        "expected": meaning(codes, zeros, scale, group_of),
    }
    if not symmetric:
        parts["m.weight_zero_point"] = pack_to_int32(torch.from_numpy(zeros).to(torch.int8), bits, packed_dim=0)
    if act_order:
        parts["m.weight_g_idx"] = torch.from_numpy(group_of.astype(np.int32))
    return parts


def int_quantized():
    codes = torch.from_numpy(RANDOM.integers(-128, 128, (ROWS, COLS))).to(torch.int8)
    scale = scales(1, torch.bfloat16)
    return {"m.weight": codes, "m.weight_scale": scale, "expected": codes.double() * scale.double()}


def float8(part, scale, rows=ROWS, cols=COLS, block=None):
    numbers = torch.from_numpy(RANDOM.normal(0, 60, (rows, cols))).to(torch.float8_e4m3fn)
    wide = scale.double()
    if block:
        wide = wide.repeat_interleave(block, 0)[:rows].repeat_interleave(block, 1)[:, :cols]
    return {"m.weight": numbers, part: scale, "expected": numbers.double() * wide}


def mxfp4():
    blocks = torch.from_numpy(RANDOM.integers(0, 256, (2, 8, 2, 16)).astype(np.uint8))
    exponents = torch.from_numpy(RANDOM.integers(110, 135, (2, 8, 2)).astype(np.uint8))
    # transformers gives [experts, columns, rows].
    expected = convert_moe_packed_tensors(blocks, exponents, dtype=torch.bfloat16).transpose(1, 2)
    return {"m_blocks": blocks, "m_scales": exponents, "expected": expected.double()}


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data/quantization")
    out.mkdir(parents=True, exist_ok=True)
    uniform = torch.from_numpy(RANDOM.uniform(0.0002, 0.002, (3, 5))).float()
    cases = {
        "gptq_4": gptq(4, symmetric=True, version=1),
        "gptq_4_zeros": gptq(4, symmetric=False, version=1),
        "gptq_4_act_order": gptq(4, symmetric=False, version=1, act_order=True),
        "gptq_8": gptq(8, symmetric=True, version=1),
        "gptq_8_zeros": gptq(8, symmetric=False, version=1),
        "gptq_v2_4_zeros": gptq(4, symmetric=False, version=2),
        "awq_4": awq(),
        "packed_4": pack_quantized(4, symmetric=True, group=32),
        "packed_4_zeros": pack_quantized(4, symmetric=False, group=32, dtype=torch.float16),
        "packed_4_channel": pack_quantized(4, symmetric=True, group=COLS, dtype=torch.float32),
        "packed_4_act_order": pack_quantized(4, symmetric=True, group=32, act_order=True),
        "packed_8": pack_quantized(8, symmetric=True, group=32),
        "packed_8_zeros": pack_quantized(8, symmetric=False, group=32),
        "int_8": int_quantized(),
        "fp8_block": float8("m.weight_scale_inv", uniform, rows=20, cols=36, block=8),
        "fp8_channel": float8("m.weight_scale", scales(1, torch.bfloat16)),
        "fp8_tensor": float8("m.weight_scale", torch.tensor([0.0031])),
        "mxfp4": mxfp4(),
    }
    for name, parts in cases.items():
        save_file({part: tensor.contiguous() for part, tensor in parts.items()}, out / f"{name}.safetensors")


if __name__ == "__main__":
    main()
