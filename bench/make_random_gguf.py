#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file of a known shape with random weights, which llama.cpp and Outrider both load.

    bench/make_random_gguf.py llama-1b q4_0 /tmp/llama-1b-q4_0.gguf
    bench/make_random_gguf.py qwen3-30b-a3b q4_0 /tmp/experts.gguf --layers 6

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
    "qwen3-30b-a3b": (2048, 48, 32, 4, 6144, 151936, 40960),
}
# Size of a head, experts, experts that a token uses, and their feed-forward size.
EXPERTS = {"qwen3-30b-a3b": (128, 128, 8, 768)}
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
        # Both signs, because the numbers of Q4_0 are negative on average: layer by layer rows would become alike.
        data[:, :, 1] ^= rng.integers(0, 2, data.shape[:2], dtype=np.uint8) << 7
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


def add_experts(writer, rng, prefix, shape, weight_type):
    """Adds the router and the stacked matrices of a layer's experts."""
    hidden, (_, count, _, ffn) = SHAPES[shape][0], EXPERTS[shape]
    router = rng.normal(0, 0.02, (count, hidden)).astype(np.float32)
    writer.add_tensor(prefix + "ffn_gate_inp.weight", router)
    for name, rows, cols in (("gate", ffn, hidden), ("up", ffn, hidden), ("down", hidden, ffn)):
        data = random_matrix(rng, count * rows, cols, weight_type).reshape(count, rows, -1)
        writer.add_tensor(f"{prefix}ffn_{name}_exps.weight", data, raw_dtype=TYPES[weight_type][0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("output")
    parser.add_argument("--layers", type=int, help="instead of the layers of the shape")
    parser.add_argument("--context", type=int, help="instead of the context length of the shape")
    options = parser.parse_args()
    hidden, layers, heads, kv_heads, ffn, vocabulary, context = SHAPES[options.shape]
    layers, context = options.layers or layers, options.context or context
    experts = EXPERTS.get(options.shape)
    head = experts[0] if experts else hidden // heads
    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(options.output, "qwen3moe" if experts else "llama")
    writer.add_name(f"random {options.shape}")
    writer.add_context_length(context)
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(ffn)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_dimension_count(head)
    if experts:
        writer.add_key_length(head)
        writer.add_value_length(head)
        writer.add_expert_count(experts[1])
        writer.add_expert_used_count(experts[2])
        writer.add_expert_feed_forward_length(experts[3])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(vocabulary)
    writer.add_file_type(TYPES[options.type][1])
    add_vocabulary(writer, vocabulary)

    def add_matrix(name, rows, cols):
        data = random_matrix(rng, rows, cols, options.type)
        writer.add_tensor(name, data, raw_dtype=TYPES[options.type][0])

    def add_norm(name, size=hidden, value=1):
        writer.add_tensor(name, np.full(size, value, dtype=np.float32))

    add_matrix("token_embd.weight", vocabulary, hidden)
    for layer in range(layers):
        prefix = f"blk.{layer}."
        # Random attention is nearly a mean over the context: unless it is faint, rows choose the same experts.
        add_norm(prefix + "attn_norm.weight", value=1 / 16 if experts else 1)
        add_matrix(prefix + "attn_q.weight", head * heads, hidden)
        add_matrix(prefix + "attn_k.weight", head * kv_heads, hidden)
        add_matrix(prefix + "attn_v.weight", head * kv_heads, hidden)
        add_matrix(prefix + "attn_output.weight", hidden, head * heads)
        add_norm(prefix + "ffn_norm.weight")
        if experts:
            add_norm(prefix + "attn_q_norm.weight", head)
            add_norm(prefix + "attn_k_norm.weight", head)
            add_experts(writer, rng, prefix, options.shape, options.type)
            continue
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
