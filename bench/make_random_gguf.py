#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file of a known shape with random weights, which llama.cpp and Outrider both load.

    bench/make_random_gguf.py llama-1b q4_0 /tmp/llama-1b-q4_0.gguf

Needs the gguf package (pip install gguf). The vocabulary is SentencePiece's: three special tokens, 256 bytes, and
numbered words.
"""

import argparse

import gguf
import numpy as np

# Hidden size, layers, heads, key-value heads, feed-forward size, vocabulary, context length.
SHAPES = {
    "llama-25m": (384, 7, 6, 6, 1024, 32000, 2048),
    "llama-68m": (768, 2, 12, 12, 3072, 32000, 2048),
    "llama-160m": (768, 12, 12, 12, 3072, 32000, 2048),
    "llama-1b": (2048, 22, 32, 4, 5632, 32000, 2048),
    "llama-8b": (4096, 32, 32, 8, 14336, 128256, 8192),
}
# Quantised type, file type, block elements, block bytes, scale that keeps numbers below about 0.03.
TYPES = {
    "q4_0": (gguf.GGMLQuantizationType.Q4_0, gguf.LlamaFileType.MOSTLY_Q4_0, 32, 18, 0.004),
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0, 32, 34, 0.00025),
    "bf16": (gguf.GGMLQuantizationType.BF16, gguf.LlamaFileType.MOSTLY_BF16, 1, 2, None),
}


def random_matrix(rng, rows, cols, weight_type):
    """Returns stored bytes [rows, bytes of a row]."""
    _, _, elements, size, scale = TYPES[weight_type]
    data = rng.integers(0, 256, (rows, cols // elements, size), dtype=np.uint8)
    if scale is None:  # bf16: random sign and mantissa with one exponent
        bits = data.reshape(rows, cols * 2).view(np.uint16)
        bits &= 0x807F
        bits |= 121 << 7
    else:
        data[:, :, :2] = np.frombuffer(np.float16(scale).tobytes(), dtype=np.uint8)
    return data.reshape(rows, -1)


def add_vocabulary(writer, size):
    tokens = [b"<unk>", b"<s>", b"</s>"] + [f"<0x{byte:02X}>".encode() for byte in range(256)]
    types = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256
    while len(tokens) < size:
        tokens.append(f"\u2581w{len(tokens)}".encode())
        types.append(gguf.TokenType.NORMAL)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(i) for i in range(size)])
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("output")
    options = parser.parse_args()
    hidden, layers, heads, kv_heads, ffn, vocabulary, context = SHAPES[options.shape]
    kv = hidden // heads * kv_heads
    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(options.output, "llama")
    writer.add_name(f"random {options.shape}")
    writer.add_context_length(context)
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(ffn)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_dimension_count(hidden // heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(vocabulary)
    writer.add_file_type(TYPES[options.type][1])
    add_vocabulary(writer, vocabulary)

    def add_matrix(name, rows, cols):
        data = random_matrix(rng, rows, cols, options.type)
        writer.add_tensor(name, data, raw_dtype=TYPES[options.type][0])

    def add_norm(name):
        writer.add_tensor(name, np.ones(hidden, dtype=np.float32))

    add_matrix("token_embd.weight", vocabulary, hidden)
    for layer in range(layers):
        prefix = f"blk.{layer}."
        add_norm(prefix + "attn_norm.weight")
        add_matrix(prefix + "attn_q.weight", hidden, hidden)
        add_matrix(prefix + "attn_k.weight", kv, hidden)
        add_matrix(prefix + "attn_v.weight", kv, hidden)
        add_matrix(prefix + "attn_output.weight", hidden, hidden)
        add_norm(prefix + "ffn_norm.weight")
        add_matrix(prefix + "ffn_gate.weight", ffn, hidden)
        add_matrix(prefix + "ffn_up.weight", ffn, hidden)
        add_matrix(prefix + "ffn_down.weight", hidden, ffn)
    add_norm("output_norm.weight")
    add_matrix("output.weight", vocabulary, hidden)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
