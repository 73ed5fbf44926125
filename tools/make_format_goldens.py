#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the model files that the tests of src/formats read, with the reference implementations of the formats.

Usage: make_format_goldens.py [tests/data/formats]
Needs: torch, transformers, tokenizers, gguf, numpy.

  <family>/        tiny random model saved by transformers (llama: sharded, bf16; qwen2, qwen3: one file, f32)
  <family>.gguf    the same weights written by the gguf package, q and k permuted as llama.cpp's converter does
  quantized.gguf   one llama layer with every block type; quantized_q_proj.bin holds its q_proj before permutation
  split-0000?-of-00003.gguf   llama.gguf in three shards
  configs.json     raw config.json texts with what transformers makes of them
"""

import json
import pathlib
import shutil
import sys

import gguf
import numpy as np
import torch
import transformers
from llama_gguf import finish, interleaved, rope_divisors
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

SIZES = dict(
    vocab_size=262,
    hidden_size=8,
    intermediate_size=12,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    max_position_embeddings=128,
    bos_token_id=260,
    eos_token_id=261,
)
LLAMA3_ROPE = dict(
    rope_type="llama3",
    rope_theta=500000.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=64,
)
FAMILIES = {
    "llama": (transformers.LlamaConfig, dict(rope_parameters=LLAMA3_ROPE, rms_norm_eps=1e-5)),
    "qwen2": (transformers.Qwen2Config, dict(tie_word_embeddings=True)),
    "qwen3": (transformers.Qwen3Config, dict(head_dim=6)),
}
LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOP_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def vocabulary():
    """Returns the 256 bytes and the pieces of four merges, the merges, and two control tokens."""
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "a"), ("i", "n")]
    pieces += [left + right for left, right in merges]
    return pieces, merges, ["<s>", "</s>"]


def save_tokenizer(directory):
    pieces, merges, special = vocabulary()
    tokenizer = Tokenizer(models.BPE(vocab={p: i for i, p in enumerate(pieces)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(directory / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": {"content": "</s>", "__type": "AddedToken"},
        "chat_template": [
            {"name": "tool_use", "template": "tools"},
            {"name": "default", "template": "{{ messages[0].content }}"},
        ],
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config))


def gguf_name(name):
    stem, kind = name.rsplit(".", 1)
    if stem in TOP_NAMES:
        return f"{TOP_NAMES[stem]}.{kind}"
    _, _, layer, rest = stem.split(".", 3)
    return f"blk.{layer}.{LAYER_NAMES[rest]}.{kind}"


def add_metadata(writer, architecture, config):
    writer.add_name(f"tiny {architecture}")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    pieces, merges, special = vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(pieces + special)
    writer.add_token_types([gguf.TokenType.NORMAL] * len(pieces) + [gguf.TokenType.CONTROL] * len(special))
    writer.add_token_merges([" ".join(merge) for merge in merges])
    writer.add_bos_token_id(260)
    writer.add_eos_token_id(261)
    writer.add_add_bos_token(True)
    writer.add_chat_template("{{ messages[0].content }}")


def add_tensors(writer, family, model):
    config = model.config
    if family == "llama":
        writer.add_tensor("rope_freqs.weight", rope_divisors(config))
    for name, parameter in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        weights = parameter.float().numpy()
        if family == "llama" and (".q_proj." in name or ".k_proj." in name):
            heads = config.num_attention_heads if ".q_proj." in name else config.num_key_value_heads
            weights = interleaved(weights, heads)
        if parameter.dtype == torch.bfloat16:
            packed = gguf.quants.quantize(weights, gguf.GGMLQuantizationType.BF16)
            writer.add_tensor(gguf_name(name), packed, raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            writer.add_tensor(gguf_name(name), np.ascontiguousarray(weights))


def make_family(out, family):
    config_class, options = FAMILIES[family]
    torch.manual_seed(1)
    config = config_class(**SIZES, **options)
    model = transformers.AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():  # constant biases and norms would hide their order from the test
        torch.nn.init.normal_(parameter)
    model.generation_config.eos_token_id = [261, 260]
    directory = out / family
    if family == "llama":
        model = model.to(torch.bfloat16)
        model.save_pretrained(directory, max_shard_size="4KB")
    else:
        model.save_pretrained(directory)
    save_tokenizer(directory)
    splits = [out / f"{family}.gguf"] + ([out / "split.gguf"] if family == "llama" else [])
    for path in splits:
        maximum = 8 if path.stem == "split" else 0
        writer = gguf.GGUFWriter(path, family, split_max_tensors=maximum)
        add_metadata(writer, family, config)
        add_tensors(writer, family, model)
        finish(writer)


def make_quantized(out):
    """Writes random blocks: the tests compare bytes and need no meaningful weights."""
    rng = np.random.default_rng(2)
    types = gguf.GGMLQuantizationType
    config = transformers.LlamaConfig(
        vocab_size=262, hidden_size=256, intermediate_size=32, num_hidden_layers=1, num_attention_heads=8,
        num_key_value_heads=2, head_dim=4, max_position_embeddings=64,
    )

    def block_tensor(rows, cols, dtype):
        elements, size = gguf.GGML_QUANT_SIZES[dtype]
        return rng.integers(0, 256, (rows, cols // elements * size), dtype=np.uint8)

    q_proj = block_tensor(32, 256, types.Q4_K)
    (out / "quantized_q_proj.bin").write_bytes(q_proj.tobytes())
    tensors = {
        "token_embd.weight": (block_tensor(262, 256, types.Q4_0), types.Q4_0),
        "output_norm.weight": (np.ones(256, dtype=np.float32), None),
        "blk.0.attn_norm.weight": (np.ones(256, dtype=np.float32), None),
        "blk.0.attn_q.weight": (interleaved(q_proj, 8), types.Q4_K),
        "blk.0.attn_k.weight": (block_tensor(8, 256, types.Q5_K), types.Q5_K),
        "blk.0.attn_v.weight": (block_tensor(8, 256, types.Q6_K), types.Q6_K),
        "blk.0.attn_output.weight": (block_tensor(256, 32, types.Q4_0), types.Q4_0),
        "blk.0.ffn_norm.weight": (np.ones(256, dtype=np.float32), None),
        "blk.0.ffn_gate.weight": (block_tensor(32, 256, types.Q4_K), types.Q4_K),
        "blk.0.ffn_up.weight": (rng.standard_normal((32, 256)).astype(np.float16), None),
        "blk.0.ffn_down.weight": (block_tensor(256, 32, types.Q8_0), types.Q8_0),
    }
    writer = gguf.GGUFWriter(out / "quantized.gguf", "llama")
    add_metadata(writer, "llama", config)
    for name, (data, dtype) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=dtype)
    finish(writer)


RAW_CONFIGS = {
    "llama 2": dict(architectures=["LlamaForCausalLM"], rope_scaling=None, max_position_embeddings=4096),
    "llama 3.1": dict(
        architectures=["LlamaForCausalLM"], num_key_value_heads=2, rope_theta=500000.0, eos_token_id=[1, 8, 9],
        max_position_embeddings=131072,
        rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                          original_max_position_embeddings=8192),
    ),
    "llama linear": dict(architectures=["LlamaForCausalLM"], rope_scaling=dict(type="linear", factor=4.0)),
    "llama rope_parameters": dict(
        architectures=["LlamaForCausalLM"],
        rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=32.0, low_freq_factor=1.0,
                             high_freq_factor=4.0, original_max_position_embeddings=8192)),
    "llama biases": dict(architectures=["LlamaForCausalLM"], attention_bias=True, mlp_bias=True, head_dim=32),
    "llama bare": dict(architectures=["LlamaForCausalLM"]),
    "smollm2": dict(architectures=["LlamaForCausalLM"], tie_word_embeddings=True, rope_theta=100000,
                    num_key_value_heads=2, rms_norm_eps=1e-5),
    "mistral 0.1": dict(architectures=["MistralForCausalLM"], num_key_value_heads=2, sliding_window=4096),
    "mistral 0.3": dict(architectures=["MistralForCausalLM"], num_key_value_heads=2, sliding_window=None,
                        rope_theta=1000000.0),
    "mistral bare": dict(architectures=["MistralForCausalLM"]),
    "qwen2": dict(architectures=["Qwen2ForCausalLM"], num_key_value_heads=2, use_sliding_window=False,
                  sliding_window=131072, max_window_layers=28, rope_theta=1000000.0),
    "qwen2 sliding": dict(architectures=["Qwen2ForCausalLM"], num_key_value_heads=2, use_sliding_window=True,
                          sliding_window=512, max_window_layers=0),
    "qwen2 late window": dict(architectures=["Qwen2ForCausalLM"], num_key_value_heads=None, use_sliding_window=True,
                              sliding_window=512, max_window_layers=4),
    "qwen3": dict(architectures=["Qwen3ForCausalLM"], num_key_value_heads=2, head_dim=16, attention_bias=False),
    "qwen3 bare": dict(architectures=["Qwen3ForCausalLM"]),
}


def make_configs(out):
    cases = []
    base = dict(vocab_size=1000, hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=32)
    for name, options in RAW_CONFIGS.items():
        raw = {**base, "model_type": options["architectures"][0].lower().removesuffix("forcausallm"), **options}
        parsed = transformers.AutoConfig.for_model(**{**json.loads(json.dumps(raw))})
        rope = parsed.rope_parameters
        head_dim = getattr(parsed, "head_dim", None) or parsed.hidden_size // parsed.num_attention_heads
        layers = set(getattr(parsed, "layer_types", None) or [])
        slides = "sliding_attention" in layers if layers else parsed.model_type == "mistral"
        model = transformers.AutoModelForCausalLM.from_config(
            transformers.AutoConfig.for_model(**{**raw, "num_hidden_layers": 1, "vocab_size": 10, "layer_types": None}))
        tensors = set(model.state_dict())
        cases.append({
            "name": name,
            "config": json.dumps(raw),
            "expected": {
                "family": parsed.model_type,
                "kv_head_count": parsed.num_key_value_heads,
                "head_dim": head_dim,
                "max_context": parsed.max_position_embeddings,
                "rms_epsilon": parsed.rms_norm_eps,
                "rope_theta": rope["rope_theta"],
                "rope_type": rope["rope_type"],
                "rope_factor": rope.get("factor", 1.0),
                "original_context": rope.get("original_max_position_embeddings", 8192),
                "sliding_window": (parsed.sliding_window or 0) if slides else 0,
                "tied_embeddings": parsed.tie_word_embeddings,
                "qkv_bias": "model.layers.0.self_attn.q_proj.bias" in tensors,
                "output_bias": "model.layers.0.self_attn.o_proj.bias" in tensors,
                "mlp_bias": "model.layers.0.mlp.up_proj.bias" in tensors,
                "qk_norm": "model.layers.0.self_attn.q_norm.weight" in tensors,
            },
        })
    (out / "configs.json").write_text(json.dumps(cases, indent=1) + "\n")


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data/formats")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for family in FAMILIES:
        make_family(out, family)
    make_quantized(out)
    make_configs(out)


if __name__ == "__main__":
    main()
