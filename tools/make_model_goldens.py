#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small random models of every family and the results of Hugging Face transformers with them.

    python tools/make_model_goldens.py [out_dir [model...]]        default: tests/data/models, all models

Needs torch, transformers, tokenizers, numpy and gguf, and for GGUF files of mixtures of experts the source tree of
llama.cpp as LLAMA_CPP_SOURCE. Per model: a Hugging Face directory, golden.json with a
prompt, 64 greedy tokens and log-probabilities (f32, no cache), and for some a .gguf file of the same weights.
"""

import json
import math
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from llama_gguf import finish, interleaved, rope_divisors
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

VOCAB = 288
PROMPT_LENGTH = 24
STEPS = 64
TOP = 8
# Rounding could turn a greedy choice that is closer than this, so such a seed is skipped.
MIN_GAP = 2e-3
MIN_DISTINCT_TOKENS = 16

BASE = dict(
    vocab_size=VOCAB,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    rms_norm_eps=1e-5,
    tie_word_embeddings=False,
    bos_token_id=VOCAB - 2,
    eos_token_id=VOCAB - 1,
)


# Families after the first ones: about 50 kB in bf16.
SMALL = dict(hidden_size=24, intermediate_size=40)


@dataclass
class Case:
    name: str
    config_class: type
    config: dict = field(default_factory=dict)
    dtype: torch.dtype = torch.bfloat16  # type in the saved file; the golden values use the saved numbers in f32
    gguf: bool = False
    attention: str = "eager"  # implementation in transformers; eager adds the bias of Falcon's ALiBi twice
    converted: bool = False  # a GGUF file is made by llama.cpp's converter
    token_by_token: bool = False  # the golden values depend on how many tokens a pass computes


def cases():
    llama3_rope = dict(
        rope_type="llama3",
        rope_theta=10000.0,
        factor=8.0,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
        original_max_position_embeddings=32,
    )
    linear_rope = dict(rope_type="linear", rope_theta=10000.0, factor=4.0)
    return [
        Case("llama", transformers.LlamaConfig, gguf=True),
        Case("llama_rope_llama3", transformers.LlamaConfig, dict(rope_parameters=llama3_rope), gguf=True),
        # 80 is no multiple of 32: the down projection cannot be block-quantised.
        Case("llama_rope_linear", transformers.LlamaConfig, dict(rope_parameters=linear_rope, intermediate_size=80)),
        Case(
            "llama_tied",
            transformers.LlamaConfig,
            dict(tie_word_embeddings=True, intermediate_size=64),
            dtype=torch.float32,
        ),
        Case("mistral", transformers.MistralConfig, dict(sliding_window=20, head_dim=16)),
        Case("qwen2", transformers.Qwen2Config, dict(use_sliding_window=False, tie_word_embeddings=True)),
        Case("qwen3", transformers.Qwen3Config, dict(head_dim=24, use_sliding_window=False)),
        Case("olmo2", transformers.Olmo2Config, SMALL),
        Case(
            "granite",
            transformers.GraniteConfig,
            SMALL
            | dict(
                embedding_multiplier=3.0,
                residual_multiplier=0.5,
                attention_multiplier=0.15,
                logits_scaling=2.0,
                attention_bias=True,
                mlp_bias=True,
            ),
        ),
    ] + attention_cases() + block_cases() + expert_cases() + hybrid_cases() + latent_cases()


def attention_cases():
    """Families that differ in attention and positions."""
    tiny = SMALL | dict(tie_word_embeddings=True, num_hidden_layers=4, head_dim=8, pad_token_id=None)
    two = tiny | dict(num_hidden_layers=2)
    yarn = dict(
        rope_type="yarn",
        rope_theta=1e4,
        factor=8.0,
        original_max_position_embeddings=16,
        beta_fast=4.0,
        beta_slow=1.0,
        mscale=1.0,
        mscale_all_dim=0.5,
        llama_4_scaling_beta=0.2,
    )
    long_rope = dict(
        rope_type="longrope",
        rope_theta=1e4,
        partial_rotary_factor=0.75,
        short_factor=[1.0, 1.2, 1.5],
        long_factor=[2.0, 3.0, 5.0],
    )
    gemma_ropes = dict(
        sliding_attention=dict(rope_type="default", rope_theta=1e3),
        full_attention=dict(rope_type="linear", factor=4.0, rope_theta=1e5),
    )
    windows = dict(sliding_window=20, layer_types=["sliding_attention", "full_attention"] * 2)
    dynamic = dict(rope_type="dynamic", rope_theta=1e4, factor=4.0)
    return [
        Case(
            "llama_rope_dynamic",
            transformers.LlamaConfig,
            two | dict(rope_parameters=dynamic, max_position_embeddings=40),
            token_by_token=True,
        ),
        Case("smollm3", transformers.SmolLM3Config, tiny | dict(num_hidden_layers=3, no_rope_layers=[1, 0, 1])),
        Case(
            "phi3",
            transformers.Phi3Config,
            SMALL
            | dict(
                hidden_size=32,
                tie_word_embeddings=True,
                pad_token_id=None,
                sliding_window=30,
                rope_parameters=long_rope,
                original_max_position_embeddings=128,
            ),
        ),
        Case("ministral", transformers.MinistralConfig, tiny | windows),
        Case("ministral3", transformers.Ministral3Config, two | dict(rope_parameters=yarn)),
        Case(
            "gemma2",
            transformers.Gemma2Config,
            tiny
            | windows
            | dict(query_pre_attn_scalar=12, attn_logit_softcapping=5.0, final_logit_softcapping=20.0, attention_bias=True),
        ),
        Case(
            "gemma3",
            transformers.Gemma3TextConfig,
            tiny | windows | dict(query_pre_attn_scalar=12, rope_parameters=gemma_ropes),
        ),
        Case(
            "gemma4",
            transformers.Gemma4TextConfig,
            tiny
            | windows
            | dict(
                global_head_dim=16,
                num_global_key_value_heads=1,
                attention_k_eq_v=True,
                num_kv_shared_layers=2,
                use_double_wide_mlp=True,
                hidden_size_per_layer_input=8,
                vocab_size_per_layer_input=VOCAB,
                final_logit_softcapping=20.0,
            ),
        ),
    ]


def block_cases():
    """Families with other kinds of norms, layers, MLPs or positions."""
    ungated = dict(hidden_size=24, max_position_embeddings=96)
    olmo3_ropes = dict(
        sliding_attention=dict(rope_type="default", rope_theta=1e4),
        full_attention=dict(rope_type="yarn", rope_theta=1e4, factor=8.0, original_max_position_embeddings=32, attention_factor=1.2),
    )
    return [
        Case("glm", transformers.GlmConfig, SMALL | dict(head_dim=8, pad_token_id=None)),
        Case("glm4", transformers.Glm4Config, SMALL | dict(head_dim=8, pad_token_id=None)),
        Case(
            "granite4",
            transformers.GraniteMoeHybridConfig,
            SMALL
            | dict(
                shared_intermediate_size=40,
                num_local_experts=0,
                num_experts_per_tok=0,
                layer_types=["attention"] * 2,
                position_embedding_type="rope",
                mamba_n_heads=8,
                mamba_d_head=6,
                embedding_multiplier=3.0,
                residual_multiplier=0.5,
                attention_multiplier=0.15,
                logits_scaling=2.0,
            ),
        ),
        Case("olmo3", transformers.Olmo3Config, SMALL | dict(num_hidden_layers=4, sliding_window=20, rope_parameters=olmo3_ropes)),
        Case(
            "stablelm",
            transformers.StableLmConfig,
            SMALL
            | dict(use_qkv_bias=True, qk_layernorm=True, use_parallel_residual=True)
            | dict(rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.34)),
        ),
        Case(
            "opt",
            transformers.OPTConfig,
            ungated
            | dict(ffn_dim=48, word_embed_proj_dim=16, do_layer_norm_before=False, tie_word_embeddings=True, pad_token_id=None),
        ),
        Case(
            "gpt2",
            transformers.GPT2Config,
            ungated | dict(n_inner=48, scale_attn_by_inverse_layer_idx=True),
        ),
        Case("starcoder", transformers.GPTBigCodeConfig, ungated | dict(n_inner=48)),
        Case("starcoder2", transformers.Starcoder2Config, SMALL | dict(sliding_window=20, hidden_size=32)),
        Case(
            "falcon",
            transformers.FalconConfig,
            ungated
            | dict(ffn_hidden_size=48, new_decoder_architecture=True, num_kv_heads=2, bias=True),
        ),
        Case(
            "falcon_alibi",
            transformers.FalconConfig,
            ungated
            | dict(ffn_hidden_size=48, alibi=True, multi_query=False, parallel_attn=False),
            attention="sdpa",
        ),
        Case(
            "mpt",
            transformers.MptConfig,
            ungated | dict(max_seq_len=256, attn_config=dict(clip_qkv=0.9)),
        ),
    ]


def hybrid_cases():
    """Families with layers that keep a state in place of keys and values."""
    delta = dict(
        hidden_size=24,
        num_hidden_layers=4,
        layer_types=["linear_attention", "full_attention", "linear_attention", "linear_attention"],
        head_dim=16,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=8,
        linear_value_head_dim=12,
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5),
        pad_token_id=None,
    )
    return [
        Case(
            "lfm2",
            transformers.Lfm2Config,
            SMALL
            | dict(
                num_hidden_layers=4,
                layer_types=["conv", "full_attention", "conv", "conv"],
                block_auto_adjust_ff_dim=False,
                norm_eps=1e-5,
                pad_token_id=None,
            ),
            converted=True,
        ),
        Case("qwen3_5", transformers.Qwen3_5TextConfig, delta | dict(intermediate_size=40), converted=True),
        Case(
            "qwen3_next",
            transformers.Qwen3NextConfig,
            delta
            | dict(
                num_hidden_layers=2,
                intermediate_size=40,
                layer_types=["linear_attention", "full_attention"],
                num_experts=5,
                num_experts_per_tok=2,
                moe_intermediate_size=16,
                shared_expert_intermediate_size=24,
            ),
            converted=True,
        ),
        Case(
            "qwen3_5_moe",
            transformers.Qwen3_5MoeTextConfig,
            delta
            | dict(
                num_hidden_layers=2,
                layer_types=["linear_attention", "full_attention"],
                num_experts=5,
                num_experts_per_tok=2,
                moe_intermediate_size=16,
                shared_expert_intermediate_size=24,
            ),
            converted=True,
        ),
    ]


def latent_cases():
    """Families with keys and values that are projections of one small vector."""
    latent = dict(
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=3,
        num_key_value_heads=4,
        kv_lora_rank=16,
        qk_nope_head_dim=8,
        qk_rope_head_dim=4,
        v_head_dim=12,
        n_routed_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        n_shared_experts=1,
        pad_token_id=None,
    )
    yarn = dict(rope_type="yarn", rope_theta=1e4, factor=8.0, original_max_position_embeddings=32)
    return [
        Case(
            "deepseek_v2",
            transformers.DeepseekV2Config,
            latent
            | dict(q_lora_rank=None, first_k_dense_replace=1, routed_scaling_factor=1.5)
            | dict(rope_parameters=yarn | dict(mscale=0.7, mscale_all_dim=0.7)),
            converted=True,
        ),
        Case(
            "deepseek_v3",
            transformers.DeepseekV3Config,
            latent
            | dict(q_lora_rank=20, first_k_dense_replace=1, n_group=2, topk_group=1, scoring_func="sigmoid")
            | dict(rope_parameters=yarn | dict(mscale=1.0, mscale_all_dim=1.0)),
            converted=True,
        ),
        Case(
            "glm4_moe_lite",
            transformers.Glm4MoeLiteConfig,
            latent | dict(q_lora_rank=20, mlp_layer_types=["dense", "sparse", "sparse"]),
            converted=True,
        ),
    ]


def expert_cases():
    """Mixtures of experts: each way of routing, with shared experts, dense layers, sinks and chunks."""
    tiny = dict(hidden_size=24, intermediate_size=16, pad_token_id=None)
    qwen = tiny | dict(moe_intermediate_size=16, num_experts=6, num_experts_per_tok=2)
    yarn = dict(rope_type="yarn", rope_theta=1e4, factor=8.0, original_max_position_embeddings=16, truncate=False)
    return [
        Case("mixtral", transformers.MixtralConfig, tiny | dict(num_local_experts=5, num_experts_per_tok=2), converted=True),
        Case(
            "qwen2_moe",
            transformers.Qwen2MoeConfig,
            qwen | dict(num_hidden_layers=3, shared_expert_intermediate_size=24, mlp_only_layers=[1]),
        ),
        Case("qwen3_moe", transformers.Qwen3MoeConfig, qwen | dict(head_dim=8, norm_topk_prob=True)),
        Case("olmoe", transformers.OlmoeConfig, tiny | dict(num_experts=6, num_experts_per_tok=3)),
        Case(
            "gpt_oss",
            transformers.GptOssConfig,
            tiny
            | dict(head_dim=8, sliding_window=20, num_local_experts=4, num_experts_per_tok=2, rope_parameters=yarn),
            converted=True,
        ),
        Case(
            "granitemoe",
            transformers.GraniteMoeSharedConfig,
            tiny
            | dict(num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=24)
            | dict(embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.15, logits_scaling=2.0),
        ),
        Case(
            "glm4_moe",
            transformers.Glm4MoeConfig,
            tiny
            | dict(head_dim=8, num_hidden_layers=3, moe_intermediate_size=16, n_routed_experts=8, num_experts_per_tok=3)
            | dict(n_group=4, topk_group=2, routed_scaling_factor=1.5, use_qk_norm=True, attention_bias=True),
            converted=True,
        ),
        Case(
            "gemma4_moe",
            transformers.Gemma4TextConfig,
            tiny
            | dict(head_dim=8, global_head_dim=8, num_hidden_layers=2, sliding_window=20)
            | dict(layer_types=["sliding_attention", "full_attention"], hidden_size_per_layer_input=0)
            | dict(enable_moe_block=True, num_experts=5, top_k_experts=2, moe_intermediate_size=16)
            | dict(num_kv_shared_layers=0),
        ),
        Case(
            "llama4",
            transformers.Llama4TextConfig,
            tiny
            | dict(head_dim=8, num_hidden_layers=4, intermediate_size_mlp=40, num_local_experts=4)
            | dict(interleave_moe_layer_step=2, attention_chunk_size=16, floor_scale=8),
        ),
    ]


def randomize(model, seed, dtype):
    """Fills the model with numbers of `dtype`, spread so widely that neither logits nor attention are flat."""
    generator = torch.Generator().manual_seed(seed)

    def normal(tensor, mean, std):
        tensor.copy_((mean + std * torch.randn(tensor.shape, generator=generator)).to(dtype))

    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if name.endswith("A_log"):
                normal(tensor, -2.0, 0.5)  # states that last
            elif name.endswith("bias"):
                is_of_norm = "norm" in name or "ln_" in name
                normal(tensor, 0.0, 0.1 if is_of_norm else 0.5)
            elif tensor.dim() == 1:
                normal(tensor, 1.0, 0.2)
            elif any(part in name for part in ("embed", "wte", "wpe")):
                normal(tensor, 0.0, 0.4)
            elif any(part in name for part in ("q_proj", "k_proj", "c_attn", "query_key_value", "Wqkv")):
                normal(tensor, 0.0, 0.25)
            else:
                normal(tensor, 0.0, 0.18)
        for name, tensor in model.named_buffers():
            if "layer_scalar" in name:
                normal(tensor, 0.8, 0.1)
            if "correction" in name:
                normal(tensor, 0.0, 0.2)


def last_logits(model, tokens):
    with torch.no_grad():
        return model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1]


def last_logits_token_by_token(model, tokens):
    cache = transformers.DynamicCache(config=model.config)
    with torch.no_grad():
        for token in tokens:
            logits = model(input_ids=torch.tensor([[token]]), past_key_values=cache, use_cache=True).logits[0, -1]
    return logits


def greedy(model, prompt, compute=last_logits):
    """Returns tokens, log-probabilities [STEPS, vocab] and the smallest gap between the best two."""
    tokens, rows, gap = list(prompt), [], math.inf
    for _ in range(STEPS):
        logits = compute(model, tokens)
        logprobs = torch.log_softmax(logits.double(), dim=-1)
        best = logprobs.topk(2)
        gap = min(gap, (best.values[0] - best.values[1]).item())
        rows.append(logprobs)
        tokens.append(best.indices[0].item())
    return tokens[len(prompt):], torch.stack(rows), gap


def make_tokenizer():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [(a, b) for a in "etaoin" for b in "rstnd"]
    vocab = {piece: i for i, piece in enumerate(alphabet)}
    for a, b in merges:
        vocab[a + b] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    assert tokenizer.get_vocab_size() == VOCAB
    return tokenizer, merges


def write_directory(case, directory, tokenizer):
    """Saves the first seed with clear greedy choices, with its goldens; returns the model as loaded again."""
    prompt = [(7 * i * i + 3 * i + 11) % (VOCAB - 2) for i in range(PROMPT_LENGTH)]
    for seed in range(200):
        config = case.config_class(**{**BASE, **case.config})
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=case.attention)
        randomize(model.float().eval(), seed, case.dtype)
        compute = last_logits_token_by_token if case.token_by_token else last_logits
        tokens, logprobs, gap = greedy(model, prompt, compute)
        if gap > MIN_GAP and len(set(tokens)) >= MIN_DISTINCT_TOKENS:
            break
    else:
        raise SystemExit(f"{case.name}: no seed with clear greedy choices")
    model.to(case.dtype).save_pretrained(directory)
    tokenizer.save(str(directory / "tokenizer.json"), pretty=False)
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": "<s>", "eos_token": "</s>", "tokenizer_class": "PreTrainedTokenizerFast"}) + "\n"
    )
    saved = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation=case.attention
    ).eval()
    again, logprobs, _ = greedy(saved, prompt, compute)
    assert again == tokens
    print(f"{case.name}: seed {seed}, smallest gap {gap:.4f}, {len(set(tokens))} distinct tokens")
    top = logprobs.topk(TOP)
    golden = {
        "prompt": prompt,
        "greedy": tokens,
        "top_ids": top.indices.tolist(),
        "top_logprobs": [[round(x, 7) for x in row] for row in top.values.tolist()],
        "mean_logprob": [round(x, 7) for x in logprobs.mean(dim=-1).tolist()],
    }
    (directory / "golden.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    return saved


def write_gguf(model, path, tokenizer, merges):
    config = model.config
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    pieces = [tokenizer.id_to_token(i) for i in range(config.vocab_size)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(pieces)
    writer.add_token_types([3 if piece in ("<s>", "</s>") else 1 for piece in pieces])
    writer.add_token_merges([" ".join(merge) for merge in merges])
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)

    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        array = tensor.float().numpy()
        if "q_proj" in name:
            array = interleaved(array, config.num_attention_heads)
        if "k_proj" in name:
            array = interleaved(array, config.num_key_value_heads)
        out_name = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if array.ndim == 1:
            writer.add_tensor(out_name, array)
        else:
            kind = gguf.GGMLQuantizationType.BF16
            writer.add_tensor(out_name, gguf.quants.quantize(np.ascontiguousarray(array), kind), raw_dtype=kind)
    if config.rope_parameters["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_divisors(config))
    finish(writer)


def convert_directory(directory, path):
    """Converts with llama.cpp's script, which check_families.py prepares before anything imports the gguf package."""
    command = "import sys; import check_families; check_families.convert(sys.argv[1], sys.argv[2], 'bf16')"
    subprocess.run([sys.executable, "-c", command, str(directory), str(path)], check=True, cwd=Path(__file__).parent)


def main():
    out = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path(__file__).parent.parent / "tests/data/models"
    torch.set_num_threads(1)
    tokenizer, merges = make_tokenizer()
    wanted = sys.argv[2:]
    for case in cases():
        if wanted and case.name not in wanted:
            continue
        directory = out / case.name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        model = write_directory(case, directory, tokenizer)
        if case.converted:
            convert_directory(directory, out / f"{case.name}.gguf")
        if case.gguf:
            write_gguf(model, out / f"{case.name}.gguf", tokenizer, merges)


if __name__ == "__main__":
    main()
