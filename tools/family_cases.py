# SPDX-License-Identifier: Apache-2.0
"""Configurations of every family for check_families.py: small models with every option that the family has.

A family is a base configuration and a list of axes. An axis is one option with its values; the first value is the one
that a case has unless it is about this option.
"""

import random
from dataclasses import dataclass, field

VOCAB = 288
LAYERS = 4

SIZES = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=LAYERS, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=256, bos_token_id=VOCAB - 2, eos_token_id=VOCAB - 1,
             pad_token_id=None)


@dataclass
class Family:
    name: str
    config_class: str  # of transformers
    base: dict = field(default_factory=dict)
    axes: list = field(default_factory=list)
    gguf_loses: tuple = ()  # keys that llama.cpp's converter leaves out of its files
    combinations: int = 4  # cases with a value of every axis drawn at random


def rope(kind="default", theta=10000.0, **options):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=theta, **options))


LLAMA3_ROPE = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
LINEAR_ROPE = rope("linear", factor=4.0)
YARN_ROPE = rope("yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=16.0, beta_slow=2.0)
YARN_SCALED = rope("yarn", factor=8.0, original_max_position_embeddings=32, mscale=0.8, mscale_all_dim=0.5)
YARN_ATTENTION = rope("yarn", factor=4.0, original_max_position_embeddings=64, attention_factor=1.3, truncate=False)
ROPES = [{}, LLAMA3_ROPE, LINEAR_ROPE, YARN_ROPE, YARN_SCALED, YARN_ATTENTION, rope(theta=500000.0)]

GROUPS = [{}, dict(num_key_value_heads=4), dict(num_key_value_heads=1)]
TIED = [{}, dict(tie_word_embeddings=True)]
UNTIED = [{}, dict(tie_word_embeddings=False)]
ATTENTION_BIAS = [{}, dict(attention_bias=True)]
MLP_BIAS = [{}, dict(mlp_bias=True)]
HEAD_DIM = [{}, dict(head_dim=24)]
ALTERNATE = ["sliding_attention", "full_attention"] * (LAYERS // 2)


def windows(size=20, **more):
    return [{}, dict(sliding_window=size, **more)]


def long_rope(dim, **more):
    """LongRoPE with `dim` rotated numbers per head."""
    half = dim // 2
    return dict(rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1 + 0.1 * i for i in range(half)],
                                     long_factor=[2 + 0.7 * i for i in range(half)], **more))


LLAMA = Family("llama", "LlamaConfig", {}, [ROPES, GROUPS, TIED, ATTENTION_BIAS, MLP_BIAS, HEAD_DIM])
MISTRAL = Family("mistral", "MistralConfig", dict(sliding_window=None), [ROPES, GROUPS, TIED, HEAD_DIM, windows()],
                 gguf_loses=("sliding_window",))
QWEN2 = Family("qwen2", "Qwen2Config", {},
               [ROPES, GROUPS, TIED, [{}, dict(vocab_size=VOCAB + 12)],
                [{}, dict(use_sliding_window=True, sliding_window=20, max_window_layers=0),
                 dict(use_sliding_window=True, sliding_window=12, max_window_layers=2)]],
               gguf_loses=("use_sliding_window", "vocab_size"))
QWEN3 = Family("qwen3", "Qwen3Config", dict(head_dim=24), [
    ROPES, GROUPS, TIED, ATTENTION_BIAS,
    [{}, dict(use_sliding_window=True, sliding_window=20, max_window_layers=0),
     dict(use_sliding_window=True, sliding_window=12, max_window_layers=1)]], gguf_loses=("use_sliding_window",))

# Files of Gemma 2 and 3 leave to the reader what their models have in common.
GEMMA_LOSES = ("layer_types", "query_pre_attn_scalar", "tie_word_embeddings", "head_dim")
GEMMA2 = Family("gemma2", "Gemma2Config", dict(head_dim=16, sliding_window=20, query_pre_attn_scalar=16), [
    [{}, rope(theta=1000.0)], GROUPS, UNTIED, ATTENTION_BIAS, HEAD_DIM, [{}, dict(query_pre_attn_scalar=40)],
    [{}, dict(attn_logit_softcapping=None), dict(attn_logit_softcapping=2.0)],
    [{}, dict(final_logit_softcapping=None), dict(final_logit_softcapping=3.0)],
    [{}, dict(layer_types=["full_attention"] * LAYERS), dict(layer_types=ALTERNATE[::-1])]],
    gguf_loses=(*GEMMA_LOSES, "rope_parameters"))


def gemma3_rope(**full):
    return dict(rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=10000.0),
                                     full_attention=dict(rope_theta=1e6, **full)))


GEMMA3_LAYERS = ["sliding_attention"] * 5 + ["full_attention"]
GEMMA3 = Family("gemma3", "Gemma3TextConfig", dict(
    head_dim=16, sliding_window=20, query_pre_attn_scalar=16, num_hidden_layers=6, layer_types=GEMMA3_LAYERS), [
        [gemma3_rope(rope_type="default"), gemma3_rope(rope_type="linear", factor=8.0)], GROUPS, UNTIED, HEAD_DIM, ATTENTION_BIAS,
        [{}, dict(query_pre_attn_scalar=40)], [{}, dict(final_logit_softcapping=3.0)], [{}, dict(attn_logit_softcapping=2.0)],
        [{}, dict(layer_types=["sliding_attention", "full_attention"] * 3), dict(layer_types=["full_attention"] * 6)]],
    gguf_loses=(*GEMMA_LOSES, "attention_bias", "attn_logit_softcapping", "final_logit_softcapping"))

GEMMA4_ROPE = dict(rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=10000.0),
                                        full_attention=dict(rope_type="proportional", partial_rotary_factor=0.25, rope_theta=1e6)))
GEMMA4 = Family("gemma4", "Gemma4TextConfig", dict(
    head_dim=16, global_head_dim=32, sliding_window=20, layer_types=ALTERNATE, vocab_size_per_layer_input=VOCAB,
    hidden_size_per_layer_input=0, num_kv_shared_layers=0, **GEMMA4_ROPE), [
        GROUPS, UNTIED, [{}, dict(final_logit_softcapping=3.0)], [{}, dict(hidden_size_per_layer_input=24)],
        [{}, dict(attention_k_eq_v=True, num_global_key_value_heads=1)], [{}, dict(num_kv_shared_layers=2, hidden_size_per_layer_input=24)],
        [{}, dict(use_double_wide_mlp=True, num_kv_shared_layers=2, hidden_size_per_layer_input=24)]])

SMOLLM3 = Family("smollm3", "SmolLM3Config", {}, [
    ROPES, GROUPS, UNTIED, ATTENTION_BIAS, MLP_BIAS,
    [{}, dict(no_rope_layers=[1, 0, 1, 0]), dict(no_rope_layers=[1] * LAYERS), dict(no_rope_layer_interval=2)],
    [{}, dict(use_sliding_window=True, sliding_window=20, layer_types=ALTERNATE)]],
    gguf_loses=("no_rope_layers", "no_rope_layer_interval", "use_sliding_window"))

MINISTRAL = Family("ministral", "MinistralConfig", dict(sliding_window=20, head_dim=16),
                   [ROPES, GROUPS, TIED, HEAD_DIM, [{}, dict(layer_types=ALTERNATE), dict(layer_types=["full_attention"] * LAYERS)]])


def ministral3_rope(**options):
    return dict(rope_parameters=dict(rope_type="yarn", rope_theta=1e6, factor=16.0, original_max_position_embeddings=16,
                                     max_position_embeddings=256, beta_fast=32.0, beta_slow=1.0, mscale=1.0,
                                     mscale_all_dim=1.0, llama_4_scaling_beta=0.1) | options)


MINISTRAL3 = Family("ministral3", "Ministral3Config", dict(head_dim=16, sliding_window=None), [
    [ministral3_rope(), ministral3_rope(llama_4_scaling_beta=0.5), ministral3_rope(mscale_all_dim=0.0), ministral3_rope(beta_fast=8.0)],
    GROUPS, TIED, HEAD_DIM, windows()], gguf_loses=("sliding_window",))

GRANITE = Family("granite", "GraniteConfig", dict(attention_multiplier=0.2), [
    ROPES, GROUPS, TIED, ATTENTION_BIAS, MLP_BIAS, [{}, dict(embedding_multiplier=6.0)], [{}, dict(logits_scaling=4.0)],
    [{}, dict(residual_multiplier=0.3)], [{}, dict(attention_multiplier=0.05)]])
GRANITE4 = Family("granite4", "GraniteMoeHybridConfig", dict(
    attention_multiplier=0.2, num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=96,
    layer_types=["attention"] * LAYERS, position_embedding_type="rope", mamba_n_heads=8, mamba_d_head=16), [
        [{}, rope(theta=500000.0)], GROUPS, TIED, ATTENTION_BIAS, [{}, dict(embedding_multiplier=6.0)], [{}, dict(logits_scaling=4.0)],
        [{}, dict(residual_multiplier=0.3)], [{}, dict(attention_multiplier=0.05)]])

PHI3 = Family("phi3", "Phi3Config", dict(original_max_position_embeddings=256), [
    [{}, long_rope(16) | dict(original_max_position_embeddings=64), long_rope(16) | dict(original_max_position_embeddings=128),
     rope(theta=500000.0), rope(partial_rotary_factor=0.75)],
    GROUPS, TIED, windows()])

OLMO2 = Family("olmo2", "Olmo2Config", {}, [ROPES, GROUPS, TIED, ATTENTION_BIAS])


def olmo3_rope(**full):
    return dict(rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=10000.0),
                                     full_attention=dict(rope_theta=10000.0, **full)))


OLMO3 = Family("olmo3", "Olmo3Config", dict(sliding_window=20), [
    [olmo3_rope(rope_type="default"), olmo3_rope(rope_type="yarn", factor=8.0, original_max_position_embeddings=32)], GROUPS, TIED,
    ATTENTION_BIAS, [{}, dict(layer_types=ALTERNATE), dict(layer_types=["full_attention"] * LAYERS)]])
GLM_AXES = [[{}, rope(partial_rotary_factor=1.0), rope(theta=500000.0, partial_rotary_factor=0.5)], GROUPS, TIED, HEAD_DIM,
            [{}, dict(attention_bias=False)]]
# The converter writes an epsilon of 1e-5 and takes the context from seq_length.
GLM = Family("glm", "GlmConfig", dict(head_dim=16, rms_norm_eps=1e-5, seq_length=256), [*GLM_AXES, [{}, dict(rms_norm_eps=1.5625e-7)]],
             gguf_loses=("head_dim", "rms_norm_eps", "rope_theta"))
GLM4 = Family("glm4", "Glm4Config", dict(head_dim=16), GLM_AXES)
STABLELM = Family("stablelm", "StableLmConfig", {}, [
    [rope(partial_rotary_factor=0.25), rope(partial_rotary_factor=0.5, theta=500000.0), rope(partial_rotary_factor=1.0)], GROUPS, TIED,
    [{}, dict(use_qkv_bias=True)], [{}, dict(qk_layernorm=True)], [{}, dict(use_parallel_residual=True)]], gguf_loses=("rope_theta",))

OPT = Family("opt", "OPTConfig", dict(ffn_dim=96, word_embed_proj_dim=64), [
    [{}, dict(do_layer_norm_before=False)], [{}, dict(word_embed_proj_dim=32)], [{}, dict(enable_bias=False)],
    [{}, dict(layer_norm_elementwise_affine=False)], [{}, dict(activation_function="gelu")], UNTIED])
GPT2_SIZES = dict(n_positions=256, n_embd=64, n_layer=LAYERS, n_head=4)
GPT2 = Family("gpt2", "GPT2Config", dict(n_ctx=256, **GPT2_SIZES), [
    [{}, dict(n_inner=96)], [{}, dict(activation_function="gelu"), dict(activation_function="relu")], UNTIED,
    [{}, dict(scale_attn_weights=False)], [{}, dict(scale_attn_by_inverse_layer_idx=True)]],
    gguf_loses=("n_inner", "activation_function", "scale_attn_weights", "scale_attn_by_inverse_layer_idx"))
FALCON = Family("falcon", "FalconConfig", dict(num_kv_heads=1), [
    [{}, dict(multi_query=False, num_kv_heads=4), dict(parallel_attn=False), dict(new_decoder_architecture=True, num_kv_heads=2),
     dict(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1)],
    [{}, dict(alibi=True)], [{}, dict(bias=True)], [{}, dict(ffn_hidden_size=128)], UNTIED, [{}, rope(theta=500000.0)]],
    gguf_loses=("alibi", "ffn_hidden_size", "rope_theta"))
MPT = Family("mpt", "MptConfig", dict(d_model=64, n_heads=4, n_layers=LAYERS, max_seq_len=256), [
    [{}, dict(attn_config=dict(clip_qkv=0.5))], [{}, dict(attn_config=dict(softmax_scale=0.4))],
    [{}, dict(expansion_ratio=2)], UNTIED])
STARCODER = Family("starcoder", "GPTBigCodeConfig", GPT2_SIZES, [
    [{}, dict(n_inner=96)], [{}, dict(multi_query=False)], [{}, dict(activation_function="gelu")], UNTIED,
    [{}, dict(scale_attn_weights=False)]], gguf_loses=("n_inner", "activation_function", "scale_attn_weights", "multi_query"))
STARCODER2 = Family("starcoder2", "Starcoder2Config", {}, [
    [{}, rope(theta=500000.0)], GROUPS, UNTIED, [{}, dict(use_bias=False)], windows()], gguf_loses=("sliding_window",))

EXPERTS = dict(num_local_experts=6, num_experts_per_tok=2)
FEW_EXPERTS = [{}, dict(num_experts_per_tok=1), dict(num_experts_per_tok=6)]
MIXTRAL = Family("mixtral", "MixtralConfig", EXPERTS, [
    [{}, rope(theta=500000.0)], GROUPS, TIED, HEAD_DIM, FEW_EXPERTS, windows(), [{}, dict(num_local_experts=8)]],
    gguf_loses=("sliding_window",))
QWEN_EXPERTS = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32, norm_topk_prob=False)
DENSE_LAYERS = [{}, dict(mlp_only_layers=[0]), dict(decoder_sparse_step=2)]
QWEN2_MOE = Family("qwen2_moe", "Qwen2MoeConfig", QWEN_EXPERTS | dict(shared_expert_intermediate_size=48), [
    [{}, YARN_ROPE], GROUPS, TIED, FEW_EXPERTS, DENSE_LAYERS, [{}, dict(norm_topk_prob=True)]],
    gguf_loses=("norm_topk_prob", "mlp_only_layers", "decoder_sparse_step"))
QWEN3_MOE = Family("qwen3_moe", "Qwen3MoeConfig", QWEN_EXPERTS | dict(head_dim=24, norm_topk_prob=True), [
    [{}, YARN_ROPE], GROUPS, TIED, ATTENTION_BIAS, FEW_EXPERTS, DENSE_LAYERS, [{}, dict(norm_topk_prob=False)]],
    gguf_loses=("norm_topk_prob", "mlp_only_layers", "decoder_sparse_step"))
OLMOE = Family("olmoe", "OlmoeConfig", dict(num_experts=6, num_experts_per_tok=2), [
    [{}, rope(theta=500000.0)], GROUPS, TIED, FEW_EXPERTS, [{}, dict(norm_topk_prob=True)]],
    gguf_loses=("norm_topk_prob",))
OSS_YARN = dict(rope_parameters=dict(rope_type="yarn", rope_theta=150000.0, factor=8.0, original_max_position_embeddings=32,
                                     beta_fast=32.0, beta_slow=1.0, truncate=False))
GPT_OSS = Family("gpt_oss", "GptOssConfig", EXPERTS | OSS_YARN | dict(head_dim=16, sliding_window=20), [
    GROUPS, HEAD_DIM, FEW_EXPERTS, [{}, dict(layer_types=["full_attention"] * LAYERS)], [{}, dict(attention_bias=False)],
    [{}, rope(theta=10000.0)], [{}, dict(sliding_window=7)]], gguf_loses=("layer_types", "attention_bias", "rope_parameters"))
GRANITE_MOE = Family("granitemoe", "GraniteMoeConfig", EXPERTS | dict(attention_multiplier=0.2), [
    [{}, rope(theta=500000.0)], GROUPS, TIED, ATTENTION_BIAS, FEW_EXPERTS, [{}, dict(embedding_multiplier=6.0)],
    [{}, dict(logits_scaling=4.0)], [{}, dict(residual_multiplier=0.3)]])
GRANITE_SHARED = Family("granitemoeshared", "GraniteMoeSharedConfig",
                        GRANITE_MOE.base | dict(shared_intermediate_size=48), GRANITE_MOE.axes)
GRANITE4_MOE = Family("granite4_moe", "GraniteMoeHybridConfig", GRANITE4.base | EXPERTS, [
    GROUPS, FEW_EXPERTS, [{}, dict(position_embedding_type="nope")], [{}, dict(intermediate_size=40)]],
    gguf_loses=("position_embedding_type",))
GLM4_MOE = Family("glm4_moe", "Glm4MoeConfig", dict(
    n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=40, first_k_dense_replace=1), [
        [{}, rope(theta=500000.0, partial_rotary_factor=0.5)], GROUPS, TIED, ATTENTION_BIAS, [{}, dict(use_qk_norm=True)],
        [{}, dict(n_group=4, topk_group=2), dict(n_group=2, topk_group=1)], [{}, dict(norm_topk_prob=False)],
        [{}, dict(routed_scaling_factor=2.5)], [{}, dict(n_shared_experts=2)], [{}, dict(first_k_dense_replace=3)]])
GEMMA4_MOE = Family("gemma4_moe", "Gemma4TextConfig", GEMMA4.base | dict(
    enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=40), [
        GROUPS, UNTIED, [{}, dict(final_logit_softcapping=3.0)], [{}, dict(hidden_size_per_layer_input=24)],
        [{}, dict(top_k_experts=1), dict(top_k_experts=6)], [{}, dict(attention_k_eq_v=True, num_global_key_value_heads=1)]])
LLAMA4 = Family("llama4", "Llama4TextConfig", EXPERTS | dict(
    num_experts_per_tok=1, head_dim=16, intermediate_size_mlp=80), [
        [{}, LLAMA3_ROPE], [{}, dict(attention_chunk_size=24, floor_scale=16)], GROUPS, TIED, FEW_EXPERTS, [{}, dict(interleave_moe_layer_step=2), dict(moe_layers=[1])],
        [{}, dict(use_qk_norm=False)], [{}, dict(attn_temperature_tuning=False)],
        [{}, dict(no_rope_layers=[0, 1, 1, 0]), dict(no_rope_layer_interval=2)], [{}, dict(attn_scale=0.5)]],
    gguf_loses=("attention_chunk_size", "floor_scale", "use_qk_norm", "attn_temperature_tuning", "no_rope_layers",
                "no_rope_layer_interval", "attn_scale", "moe_layers", "tie_word_embeddings"))

LFM2 = Family("lfm2", "Lfm2Config", dict(
    layer_types=["conv", "full_attention", "conv", "conv"], tie_word_embeddings=True, block_auto_adjust_ff_dim=False), [
        [{}, rope(theta=500000.0)], GROUPS, UNTIED, [{}, dict(conv_L_cache=2), dict(conv_L_cache=5)], [{}, dict(conv_bias=True)],
        [{}, dict(block_auto_adjust_ff_dim=True, block_multiple_of=32),
         dict(block_auto_adjust_ff_dim=True, block_multiple_of=8, block_ffn_dim_multiplier=1.5)],
        [{}, dict(layer_types=["full_attention", "conv", "conv", "full_attention"]), dict(layer_types=["full_attention"] * LAYERS)]],
    gguf_loses=("conv_bias", "tie_word_embeddings"))

DELTA_NETS = dict(layer_types=["linear_attention", "full_attention", "linear_attention", "linear_attention"], head_dim=24,
                  linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=12,
                  **rope(partial_rotary_factor=0.5))
DELTA_AXES = [
    [{}, rope(theta=500000.0, partial_rotary_factor=0.25)], GROUPS, TIED, [{}, dict(linear_conv_kernel_dim=2)],
    [{}, dict(linear_num_value_heads=2), dict(linear_num_key_heads=1), dict(linear_num_key_heads=4)],
    [{}, dict(linear_value_head_dim=8), dict(linear_key_head_dim=20)],
    [{}, dict(layer_types=None, num_hidden_layers=5), dict(layer_types=["linear_attention"] * LAYERS)]]
QWEN35 = Family("qwen3_5", "Qwen3_5TextConfig", DELTA_NETS, DELTA_AXES)
QWEN35_MOE = Family("qwen3_5_moe", "Qwen3_5MoeTextConfig", DELTA_NETS | dict(
    num_experts=6, num_experts_per_tok=3, moe_intermediate_size=40, shared_expert_intermediate_size=56), [
        *DELTA_AXES, [{}, dict(num_experts_per_tok=1), dict(num_experts_per_tok=6)]])

QWEN3_NEXT = Family("qwen3_next", "Qwen3NextConfig", QWEN35_MOE.base, [
    *QWEN35_MOE.axes, [{}, dict(mlp_only_layers=[1])], [{}, dict(norm_topk_prob=False)]],
    gguf_loses=("mlp_only_layers", "norm_topk_prob"))
LATENT = dict(kv_lora_rank=16, q_lora_rank=20, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=12, n_routed_experts=8,
              num_experts_per_tok=3, moe_intermediate_size=40, n_shared_experts=1, num_key_value_heads=4)
LATENT_YARN = rope("yarn", factor=8.0, original_max_position_embeddings=32, mscale=1.0, mscale_all_dim=1.0)
LATENT_AXES = [
    [{}, LATENT_YARN, rope(theta=500000.0)], TIED, [{}, dict(q_lora_rank=None)], [{}, dict(qk_nope_head_dim=20), dict(v_head_dim=8)],
    [{}, dict(kv_lora_rank=32), dict(qk_rope_head_dim=8)], [{}, dict(n_shared_experts=2)], [{}, dict(routed_scaling_factor=1.7)]]
DEEPSEEK2 = Family("deepseek_v2", "DeepseekV2Config", LATENT | dict(first_k_dense_replace=1), [
    *LATENT_AXES, [{}, dict(first_k_dense_replace=0)],
    [{}, dict(topk_method="group_limited_greedy", n_group=4, topk_group=2)]], gguf_loses=("topk_method",))
DEEPSEEK3 = Family("deepseek_v3", "DeepseekV3Config", LATENT | dict(first_k_dense_replace=1, n_group=2, topk_group=1, scoring_func="sigmoid"), [
    *LATENT_AXES, [{}, dict(n_group=4, topk_group=2), dict(n_group=1)], [{}, dict(norm_topk_prob=False)]],
    gguf_loses=("norm_topk_prob",))
GLM4_LITE = Family("glm4_moe_lite", "Glm4MoeLiteConfig", LATENT, [
    *LATENT_AXES, [{}, dict(mlp_layer_types=["dense", "sparse", "dense", "sparse"])]], gguf_loses=tuple(LATENT))

FAMILIES = [LLAMA, MISTRAL, QWEN2, QWEN3, GEMMA2, GEMMA3, GEMMA4, SMOLLM3, MINISTRAL, MINISTRAL3, GRANITE, GRANITE4, PHI3,
            OLMO2, OLMO3, GLM, GLM4, STABLELM, OPT, GPT2, FALCON, MPT, STARCODER, STARCODER2, MIXTRAL,
            QWEN2_MOE, QWEN3_MOE, OLMOE, GPT_OSS, GRANITE_MOE, GRANITE_SHARED, GRANITE4_MOE, GLM4_MOE, GEMMA4_MOE,
            LLAMA4, LFM2, QWEN35, QWEN35_MOE, QWEN3_NEXT, DEEPSEEK2, DEEPSEEK3, GLM4_LITE]


WITH_LLAMA3_ROPE = ("llama", "mistral", "smollm3")  # families whose GGUF files can hold its frequencies


def lost_in_gguf(family, config):
    """Whether llama.cpp's converter writes a file that is another model, without saying so."""
    rope = config.get("rope_parameters", {})
    if rope.get("rope_type") == "llama3" and family.name not in WITH_LLAMA3_ROPE:
        return True
    if rope in (YARN_SCALED["rope_parameters"], YARN_ATTENTION["rope_parameters"]):
        return True
    if "softmax_scale" in config.get("attn_config", {}):
        return True
    if "rope_theta" in family.gguf_loses and rope.get("rope_theta", 10000.0) != 10000.0:
        return True
    return any(key in config and config[key] != family.base.get(key) for key in family.gguf_loses)


def merged(values):
    """One configuration of several values of axes; the nested attn_config of MPT is merged as well."""
    config = {}
    for value in values:
        for key, item in value.items():
            config[key] = config.get(key, {}) | item if key == "attn_config" else item
    return config


def cases(family):
    """Yields (label, overrides): every value of every axis by itself, then random combinations."""
    defaults = [axis[0] for axis in family.axes]
    seen = set()

    def unseen(values):
        config = family.base | merged(values)
        label = str({key: item for key, item in config.items() if family.base.get(key) != item})
        if label in seen:
            return
        seen.add(label)
        yield label, config

    yield from unseen(defaults)
    for i, axis in enumerate(family.axes):
        for value in axis[1:]:
            yield from unseen(defaults[:i] + [value] + defaults[i + 1:])
    rng = random.Random(family.name)
    for _ in range(family.combinations):
        yield from unseen([rng.choice(axis) for axis in family.axes])
