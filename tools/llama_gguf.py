# SPDX-License-Identifier: Apache-2.0
"""The conventions of llama.cpp's converter for Llama GGUF files, shared by make_format_goldens.py, make_model_goldens.py
and compare_gguf.py."""

import math

import numpy as np


def interleaved(weights, heads):
    """Interleaves the halves of every head, rows of q or k, so that rotated pairs are neighbours."""
    return weights.reshape(heads, 2, -1, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def rope_divisors(config):
    """The frequency divisors that converters write as rope_freqs.weight for Llama-3.1 scaling."""
    rope = config.rope_parameters
    dim = config.hidden_size // config.num_attention_heads
    original = rope["original_max_position_embeddings"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    divisors = []
    for i in range(0, dim, 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (i / dim)
        if wavelength < original / high:
            divisors.append(1.0)
        elif wavelength > original / low:
            divisors.append(rope["factor"])
        else:
            kept = (original / wavelength - low) / (high - low)
            divisors.append(1 / ((1 - kept) / rope["factor"] + kept))
    return np.array(divisors, dtype=np.float32)


def finish(writer):
    """Writes the file of a gguf.GGUFWriter and closes it."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
