# SPDX-License-Identifier: Apache-2.0
"""Packs integers as quantised checkpoints of the Hugging Face Hub hold them. Needs: torch, compressed-tensors, numpy.

`codes` is [rows, columns] and `zeros` [rows, groups], both numpy arrays of numbers from 0 on; `scale` is a tensor
[rows, groups], and `group_of` has the group of each column. Parts are named by what follows the name of the module.
"""

import numpy as np
import torch
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32

AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def words(codes, bits, order=None):
    """Packs the last dimension, each number of a word at the next higher bits."""
    count = 32 // bits
    lines = codes.reshape(*codes.shape[:-1], -1, count).astype(np.uint64)
    packed = np.zeros(lines.shape[:-1], np.uint64)
    for place, index in enumerate(order or range(count)):
        packed |= lines[..., index] << np.uint64(bits * place)
    return torch.from_numpy(packed.astype(np.uint32).view(np.int32))


def meaning(codes, zeros, scale, group_of):
    return torch.from_numpy((codes - zeros[:, group_of]).astype(np.float64)) * scale.double()[:, group_of]


def gptq_parts(codes, zeros, scale, group_of, bits=4, version=1):
    return {
        ".qweight": words(codes, bits).T,
        ".qzeros": words((zeros - (1 if version == 1 else 0)).T, bits),
        ".scales": scale.T,
        ".g_idx": torch.from_numpy(group_of.astype(np.int32)),
    }


def awq_parts(codes, zeros, scale):
    return {
        ".qweight": words(codes.T, 4, AWQ_ORDER),
        ".qzeros": words(zeros.T, 4, AWQ_ORDER),
        ".scales": scale.T,
    }


def packed_parts(codes, zeros, scale, group_of, bits=4):
    half = 2 ** (bits - 1)
    parts = {
        ".weight_packed": pack_to_int32(torch.from_numpy(codes - half).to(torch.int8), bits),
        ".weight_scale": scale,
        ".weight_shape": torch.tensor(codes.shape),
    }
    if (zeros != half).any():
        zeros = torch.from_numpy(zeros - half).to(torch.int8)
        parts[".weight_zero_point"] = pack_to_int32(zeros, bits, packed_dim=0)
    if (np.diff(group_of) < 0).any():
        parts[".weight_g_idx"] = torch.from_numpy(group_of.astype(np.int32))
    return parts


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def mxfp4_parts(experts):
    """Rounds experts [experts, inputs, outputs] to MXFP4; returns its parts and the numbers that they mean."""
    groups = experts.transpose(1, 2).double().numpy()
    groups = groups.reshape(*groups.shape[:2], -1, 32)
    exponents = np.ceil(np.log2(np.abs(groups).max(-1) / 6))
    steps = np.exp2(exponents)[..., None]
    codes = np.abs(groups[..., None] / steps[..., None] - E2M1).argmin(-1).astype(np.uint8)
    numbers = torch.from_numpy((E2M1[codes] * steps).reshape(*groups.shape[:2], -1)).transpose(1, 2)
    return {
        "_blocks": torch.from_numpy(codes[..., ::2] | codes[..., 1::2] << 4),
        "_scales": torch.from_numpy((exponents + 127).astype(np.uint8)),
    }, numbers


def by_block(scale, shape, block):
    """The scale of each number of a matrix, from one scale for each block x block numbers."""
    return scale.repeat_interleave(block, 0)[: shape[0]].repeat_interleave(block, 1)[:, : shape[1]]
