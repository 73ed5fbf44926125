#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/quants/: blocks and values of the GGUF types as the `gguf` package of llama.cpp reads and writes them.

<type>.blocks     random blocks with finite scales, <type>.values their numbers as little-endian f32
input.f32         numbers to quantise, <type>.quantized the blocks made of them

Usage: make_quant_goldens.py [FOLDER]   (needs the packages gguf and numpy)
"""

import pathlib
import sys

import numpy as np
from gguf import GGMLQuantizationType, quants

ELEMENTS = 512
QUANTIZED_TYPES = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "MXFP4"]
# Byte offsets of the half-precision scales of a block; types without such scales have others (see put_scales).
HALVES_OF_BLOCK = {
    "Q8_0": [0], "Q4_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2],
    "Q2_K": [80, 82], "Q3_K": [108], "IQ4_NL": [0], "IQ4_XS": [0], "IQ1_S": [0], "IQ1_M": [], "IQ2_XXS": [0],
    "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "TQ1_0": [52], "TQ2_0": [64], "MXFP4": [], "NVFP4": []}
TYPES = ["F16", "BF16", *HALVES_OF_BLOCK]


def random_blocks(rng, name, block_bytes):
    if name in ("F16", "BF16"):
        bits = rng.integers(0, 1 << 16, ELEMENTS, dtype=np.uint16)
        infinite = 0x7C00 if name == "F16" else 0x7F80
        bits[(bits & infinite) == infinite] ^= 0x4000  # infinities and NaN are compared elsewhere
        return bits.view(np.uint8)
    blocks = rng.integers(0, 256, block_bytes, dtype=np.uint8).reshape(-1, block_bytes_of(name))
    put_scales(rng, name, blocks)
    return blocks.reshape(-1)


def put_scales(rng, name, blocks):
    for offset in HALVES_OF_BLOCK[name]:
        scales = (rng.standard_normal(len(blocks)) * 0.02).astype(np.float16)
        blocks[:, offset : offset + 2] = scales.view(np.uint8).reshape(-1, 2)
    if name == "MXFP4":  # infinities are compared elsewhere; the smallest scales are subnormal
        blocks[:, 0] = rng.choice([0, 1, 2, 3, 100, 127, 130, 250], len(blocks))
    if name == "IQ1_M":  # the scale's last nibble has its sign and exponent: no infinity, no NaN
        blocks[:, 55] &= 0xBF


def block_bytes_of(name):
    return quants.GGML_QUANT_SIZES[GGMLQuantizationType[name]][1]


def numbers_to_quantize(rng):
    x = rng.standard_normal(ELEMENTS).astype(np.float32)
    x[0:32] = 0
    x[32:64] = np.linspace(-1, 1, 32)
    x[64:96] = np.arange(32) - 16  # codes halfway between two integers
    x[96:128] *= 1e-7  # scales below the normal half-precision range
    x[128:160] *= 3000
    x[160:192] = 0.5
    x[192:224] = -np.abs(x[192:224])
    x[224:256] = np.tile([127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, -127], 4)
    for i in range(8):  # codes that would be halfway without the rounding of the scale
        x[256 + 32 * i : 288 + 32 * i] = (np.arange(32) - 16) * np.float32(0.03 + 0.01 * i)
    return x


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data/quants")
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    for name in TYPES:
        kind = GGMLQuantizationType[name]
        elements, size = quants.GGML_QUANT_SIZES[kind]
        blocks = random_blocks(rng, name, ELEMENTS // elements * size)
        raw = blocks.view(np.float16) if name == "F16" else blocks
        (folder / f"{name.lower()}.blocks").write_bytes(blocks.tobytes())
        (folder / f"{name.lower()}.values").write_bytes(quants.dequantize(raw, kind).astype("<f4").tobytes())
    x = numbers_to_quantize(rng)
    (folder / "input.f32").write_bytes(x.astype("<f4").tobytes())
    for name in QUANTIZED_TYPES:
        quantized = quants.quantize(x, GGMLQuantizationType[name])
        (folder / f"{name.lower()}.quantized").write_bytes(quantized.tobytes())


if __name__ == "__main__":
    main()
