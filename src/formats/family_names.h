// SPDX-License-Identifier: Apache-2.0
// How Hugging Face files of the families name their tensors, and GGUF files where they differ from others.
// Rows of families.cc use them.
#pragma once

#include "formats/kinds/delta_net.h"
#include "formats/kinds/latent_attention.h"
#include "formats/stored_layout.h"

namespace outrider {

inline constexpr StoredForm kStacked = {.is_stacked = true};
inline constexpr StoredForm kStackedBare = {.is_stacked = true, .is_bare = true};
inline constexpr StoredForm kStackedTransposed = {.is_stacked = true, .is_bare = true, .is_transposed = true};

inline constexpr TensorName kGemmaNames[] = {
    {"post_self_attn_layernorm", "post_attention_layernorm"},
    {"post_attention_layernorm", "pre_feedforward_layernorm"},
    {"post_mlp_layernorm", "post_feedforward_layernorm"},
    {"layer_scalar", "layer_scalar", Piece::kWhole, {.is_bare = true}},
    {"mlp.gate", "router.proj"},
    {"mlp.gate_norm", "router.scale", Piece::kWhole, {.is_bare = true}},
    {"mlp.expert_scales", "router.per_expert_scale", Piece::kWhole, {.is_bare = true}},
    {"mlp.experts_norm", "pre_feedforward_layernorm_2"},
    {"mlp.experts_output_norm", "post_feedforward_layernorm_2"},
    {"mlp.dense_output_norm", "post_feedforward_layernorm_1"},
    {"mlp.experts.gate_proj", "experts.gate_up_proj", Piece::kGate, kStackedBare},
    {"mlp.experts.up_proj", "experts.gate_up_proj", Piece::kUp, kStackedBare},
    {"mlp.experts.down_proj", "experts.down_proj", Piece::kWhole, kStackedBare}};

inline constexpr TensorName kOlmo2Names[] = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                                             {"post_mlp_layernorm", "post_feedforward_layernorm"}};

inline constexpr TensorName kFusedGateNames[] = {{"mlp.gate_proj", "mlp.gate_up_proj", Piece::kGate},
                                                 {"mlp.up_proj", "mlp.gate_up_proj", Piece::kUp}};

inline constexpr TensorName kPhi3Names[] = {{"self_attn.q_proj", "self_attn.qkv_proj", Piece::kQueries},
                                            {"self_attn.k_proj", "self_attn.qkv_proj", Piece::kKeys},
                                            {"self_attn.v_proj", "self_attn.qkv_proj", Piece::kValues},
                                            {"mlp.gate_proj", "mlp.gate_up_proj", Piece::kGate},
                                            {"mlp.up_proj", "mlp.gate_up_proj", Piece::kUp}};

inline constexpr TensorName kMixtralNames[] = {
    {"mlp.gate", "block_sparse_moe.gate"},
    {"mlp.gate", "mlp.gate"},
    {"mlp.experts.gate_proj", "block_sparse_moe.experts.#.w1"},
    {"mlp.experts.up_proj", "block_sparse_moe.experts.#.w3"},
    {"mlp.experts.down_proj", "block_sparse_moe.experts.#.w2"},
    {"mlp.experts.gate_proj", "mlp.experts.gate_up_proj", Piece::kGate, kStackedBare},
    {"mlp.experts.up_proj", "mlp.experts.gate_up_proj", Piece::kUp, kStackedBare},
    {"mlp.experts.down_proj", "mlp.experts.down_proj", Piece::kWhole, kStackedBare},
};

// Layers have one dense MLP: the shared expert, or the MLP of a layer without experts.
inline constexpr TensorName kQwenMoeNames[] = {
    {"mlp.gate_proj", "mlp.gate_proj"},
    {"mlp.up_proj", "mlp.up_proj"},
    {"mlp.down_proj", "mlp.down_proj"},
    {"mlp.gate_proj", "mlp.shared_expert.gate_proj"},
    {"mlp.up_proj", "mlp.shared_expert.up_proj"},
    {"mlp.down_proj", "mlp.shared_expert.down_proj"},
    {"mlp.experts.gate_proj", "mlp.experts.#.gate_proj"},
    {"mlp.experts.up_proj", "mlp.experts.#.up_proj"},
    {"mlp.experts.down_proj", "mlp.experts.#.down_proj"},
    {"mlp.experts.gate_proj", "mlp.experts.gate_up_proj", Piece::kGate, kStackedBare},
    {"mlp.experts.up_proj", "mlp.experts.gate_up_proj", Piece::kUp, kStackedBare},
    {"mlp.experts.down_proj", "mlp.experts.down_proj", Piece::kWhole, kStackedBare},
};

inline constexpr TensorName kGptOssNames[] = {
    {"mlp.gate", "mlp.router"},
    {"self_attn.sinks", "self_attn.sinks", Piece::kWhole, {.is_bare = true}},
    {"mlp.experts.gate_proj", "mlp.experts.gate_up_proj", Piece::kEvenRows, kStackedTransposed},
    {"mlp.experts.up_proj", "mlp.experts.gate_up_proj", Piece::kOddRows, kStackedTransposed},
    {"mlp.experts.down_proj", "mlp.experts.down_proj", Piece::kWhole, kStackedTransposed},
};

inline constexpr TensorName kGlm4MoeNames[] = {
    {"mlp.gate_proj", "mlp.gate_proj"},
    {"mlp.up_proj", "mlp.up_proj"},
    {"mlp.down_proj", "mlp.down_proj"},
    {"mlp.gate_proj", "mlp.shared_experts.gate_proj"},
    {"mlp.up_proj", "mlp.shared_experts.up_proj"},
    {"mlp.down_proj", "mlp.shared_experts.down_proj"},
    {"mlp.choice", "mlp.gate.e_score_correction", Piece::kWhole, {.is_bare = true}},
    {"mlp.experts.gate_proj", "mlp.experts.#.gate_proj"},
    {"mlp.experts.up_proj", "mlp.experts.#.up_proj"},
    {"mlp.experts.down_proj", "mlp.experts.#.down_proj"},
    {"mlp.experts.gate_proj", "mlp.experts.gate_up_proj", Piece::kGate, kStackedBare},
    {"mlp.experts.up_proj", "mlp.experts.gate_up_proj", Piece::kUp, kStackedBare},
    {"mlp.experts.down_proj", "mlp.experts.down_proj", Piece::kWhole, kStackedBare},
};

// Mixtures of experts as in GLM-4.5, with latent attention.
inline constexpr TensorName kDeepseekNames[] = {
    {"self_attn.k_b_proj", "self_attn.kv_b_proj", cut_latent_keys},
    {"self_attn.v_b_proj", "self_attn.kv_b_proj", cut_latent_values},
    {"mlp.gate_proj", "mlp.gate_proj"},
    {"mlp.up_proj", "mlp.up_proj"},
    {"mlp.down_proj", "mlp.down_proj"},
    {"mlp.gate_proj", "mlp.shared_experts.gate_proj"},
    {"mlp.up_proj", "mlp.shared_experts.up_proj"},
    {"mlp.down_proj", "mlp.shared_experts.down_proj"},
    {"mlp.choice", "mlp.gate.e_score_correction", Piece::kWhole, {.is_bare = true}},
    {"mlp.experts.gate_proj", "mlp.experts.#.gate_proj"},
    {"mlp.experts.up_proj", "mlp.experts.#.up_proj"},
    {"mlp.experts.down_proj", "mlp.experts.#.down_proj"},
    {"mlp.experts.gate_proj", "mlp.experts.gate_up_proj", Piece::kGate, kStackedBare},
    {"mlp.experts.up_proj", "mlp.experts.gate_up_proj", Piece::kUp, kStackedBare},
    {"mlp.experts.down_proj", "mlp.experts.down_proj", Piece::kWhole, kStackedBare},
};

inline constexpr TensorName kDeepseekGgufNames[] = {
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.k_b_proj", "attn_k_b", Piece::kWhole, kStacked},
    {"self_attn.v_b_proj", "attn_v_b", Piece::kWhole, kStacked},
};

inline constexpr TensorName kPostNormGgufNames[] = {{"post_attention_layernorm", "post_attention_norm"}};

inline constexpr TensorName kGraniteMoeNames[] = {
    {"mlp.gate_proj", "shared_mlp.input_linear", Piece::kGate},
    {"mlp.up_proj", "shared_mlp.input_linear", Piece::kUp},
    {"mlp.down_proj", "shared_mlp.output_linear"},
    {"mlp.gate", "block_sparse_moe.router.layer"},
    {"mlp.gate", "block_sparse_moe.router"},
    {"mlp.experts.gate_proj", "block_sparse_moe.input_linear", Piece::kGate, kStacked},
    {"mlp.experts.up_proj", "block_sparse_moe.input_linear", Piece::kUp, kStacked},
    {"mlp.experts.down_proj", "block_sparse_moe.output_linear", Piece::kWhole, kStacked},
    {"mlp.experts.gate_proj", "block_sparse_moe.experts.gate_up_proj", Piece::kGate, kStackedBare},
    {"mlp.experts.up_proj", "block_sparse_moe.experts.gate_up_proj", Piece::kUp, kStackedBare},
    {"mlp.experts.down_proj", "block_sparse_moe.experts.down_proj", Piece::kWhole, kStackedBare},
};

inline constexpr TensorName kLlama4Names[] = {
    {"mlp.gate_proj", "feed_forward.gate_proj"},
    {"mlp.up_proj", "feed_forward.up_proj"},
    {"mlp.down_proj", "feed_forward.down_proj"},
    {"mlp.gate_proj", "feed_forward.shared_expert.gate_proj"},
    {"mlp.up_proj", "feed_forward.shared_expert.up_proj"},
    {"mlp.down_proj", "feed_forward.shared_expert.down_proj"},
    {"mlp.gate", "feed_forward.router"},
    {"mlp.experts.gate_proj", "feed_forward.experts.gate_up_proj", Piece::kGate, kStackedTransposed},
    {"mlp.experts.up_proj", "feed_forward.experts.gate_up_proj", Piece::kUp, kStackedTransposed},
    {"mlp.experts.down_proj", "feed_forward.experts.down_proj", Piece::kWhole, kStackedTransposed},
};

inline constexpr TensorName kLfm2Names[] = {
    {"model.norm", "model.embedding_norm"},        {"input_layernorm", "operator_norm"},
    {"post_attention_layernorm", "ffn_norm"},      {"self_attn.o_proj", "self_attn.out_proj"},
    {"self_attn.q_norm", "self_attn.q_layernorm"}, {"self_attn.k_norm", "self_attn.k_layernorm"},
    {"mlp.gate_proj", "feed_forward.w1"},          {"mlp.up_proj", "feed_forward.w3"},
    {"mlp.down_proj", "feed_forward.w2"},
};

inline constexpr TensorName kLfm2GgufNames[] = {
    {"model.norm", "token_embd_norm"},
    {"conv.in_proj", "shortconv.in_proj"},
    {"conv.conv", "shortconv.conv"},
    {"conv.out_proj", "shortconv.out_proj"},
};

// Qwen3-Next and Qwen3.5. Layers of attention have queries and gates in one matrix. The MLP is dense, or has
// experts as in Qwen3 MoE.
inline constexpr TensorName kQwen35Names[] = {
    {"self_attn.q_proj", "self_attn.q_proj", Piece::kQueriesOfGated},
    {"self_attn.gate_proj", "self_attn.q_proj", Piece::kGatesOfQueries},
    {"linear_attn.in_proj_qkv", "linear_attn.in_proj_qkv"},
    {"linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz", cut_delta_inputs},
    {"linear_attn.in_proj_z", "linear_attn.in_proj_z"},
    {"linear_attn.in_proj_z", "linear_attn.in_proj_qkvz", cut_delta_gates},
    {"linear_attn.in_proj_b", "linear_attn.in_proj_b"},
    {"linear_attn.in_proj_b", "linear_attn.in_proj_ba", cut_delta_rates},
    {"linear_attn.in_proj_a", "linear_attn.in_proj_a"},
    {"linear_attn.in_proj_a", "linear_attn.in_proj_ba", cut_delta_times},
    {"linear_attn.dt", "linear_attn.dt", Piece::kWhole, {.is_bare = true}},
    {"linear_attn.decay", "linear_attn.A_log", Piece::kWhole, {.is_bare = true}},
    {"mlp.gate_proj", "mlp.gate_proj"},
    {"mlp.up_proj", "mlp.up_proj"},
    {"mlp.down_proj", "mlp.down_proj"},
    {"mlp.gate_proj", "mlp.shared_expert.gate_proj"},
    {"mlp.up_proj", "mlp.shared_expert.up_proj"},
    {"mlp.down_proj", "mlp.shared_expert.down_proj"},
    {"mlp.experts.gate_proj", "mlp.experts.#.gate_proj"},
    {"mlp.experts.up_proj", "mlp.experts.#.up_proj"},
    {"mlp.experts.down_proj", "mlp.experts.#.down_proj"},
    {"mlp.experts.gate_proj", "mlp.experts.gate_up_proj", Piece::kGate, kStackedBare},
    {"mlp.experts.up_proj", "mlp.experts.gate_up_proj", Piece::kUp, kStackedBare},
    {"mlp.experts.down_proj", "mlp.experts.down_proj", Piece::kWhole, kStackedBare},
};

inline constexpr TensorName kQwen35GgufNames[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"self_attn.q_proj", "attn_q", Piece::kQueriesOfGated},
    {"self_attn.gate_proj", "attn_q", Piece::kGatesOfQueries},
    {"linear_attn.in_proj_qkv", "attn_qkv"},
    {"linear_attn.in_proj_z", "attn_gate"},
    {"linear_attn.in_proj_b", "ssm_beta"},
    {"linear_attn.in_proj_a", "ssm_alpha"},
    {"linear_attn.in_proj_b", "ssm_ba", cut_delta_rates},
    {"linear_attn.in_proj_a", "ssm_ba", cut_delta_times},
    {"linear_attn.conv1d", "ssm_conv1d"},
    {"linear_attn.dt", "ssm_dt"},
    {"linear_attn.decay", "ssm_a", Piece::kWhole, {.is_bare = true}},
    {"linear_attn.norm", "ssm_norm"},
    {"linear_attn.out_proj", "ssm_out"},
};

inline constexpr TensorName kStableLmNames[] = {{"self_attn.q_norm", "self_attn.q_layernorm.norms"},
                                                {"self_attn.k_norm", "self_attn.k_layernorm.norms"}};

inline constexpr TensorName kOptNames[] = {
    {"model.embed_tokens", "model.decoder.embed_tokens"},
    {"model.embed_positions", "model.decoder.embed_positions"},
    {"model.project_in", "model.decoder.project_in"},
    {"model.project_out", "model.decoder.project_out"},
    {"model.norm", "model.decoder.final_layer_norm"},
    {"input_layernorm", "self_attn_layer_norm"},
    {"post_self_attn_layernorm", "self_attn_layer_norm"},
    {"post_attention_layernorm", "final_layer_norm"},
    {"post_mlp_layernorm", "final_layer_norm"},
    {"self_attn.o_proj", "self_attn.out_proj"},
    {"mlp.up_proj", "fc1"},
    {"mlp.down_proj", "fc2"},
};

inline constexpr TensorName kGpt2Names[] = {
    {"model.embed_tokens", "transformer.wte"},
    {"model.embed_positions", "transformer.wpe"},
    {"model.norm", "transformer.ln_f"},
    {"input_layernorm", "ln_1"},
    {"post_attention_layernorm", "ln_2"},
    {"self_attn.q_proj", "attn.c_attn", Piece::kQueries},
    {"self_attn.k_proj", "attn.c_attn", Piece::kKeys},
    {"self_attn.v_proj", "attn.c_attn", Piece::kValues},
    {"self_attn.o_proj", "attn.c_proj"},
    {"mlp.up_proj", "mlp.c_fc"},
    {"mlp.down_proj", "mlp.c_proj"},
};

inline constexpr TensorName kStarcoder2Names[] = {{"mlp.up_proj", "mlp.c_fc"},
                                                  {"mlp.down_proj", "mlp.c_proj"}};

inline constexpr TensorName kFalconNames[] = {
    {"model.embed_tokens", "transformer.word_embeddings"},
    {"model.norm", "transformer.ln_f"},
    {"input_layernorm", "input_layernorm"},
    {"input_layernorm", "ln_attn"},
    {"post_attention_layernorm", "post_attention_layernorm"},
    {"post_attention_layernorm", "ln_mlp"},
    {"self_attn.q_proj", "self_attention.query_key_value", Piece::kQueries},
    {"self_attn.k_proj", "self_attention.query_key_value", Piece::kKeys},
    {"self_attn.v_proj", "self_attention.query_key_value", Piece::kValues},
    {"self_attn.o_proj", "self_attention.dense"},
    {"mlp.up_proj", "mlp.dense_h_to_4h"},
    {"mlp.down_proj", "mlp.dense_4h_to_h"},
};

// Where there are two norms, attn_norm is the MLP's.
inline constexpr TensorName kFalconGgufNames[] = {{"input_layernorm", "attn_norm_2"},
                                                  {"input_layernorm", "attn_norm"},
                                                  {"post_attention_layernorm", "attn_norm"}};

inline constexpr TensorName kMptNames[] = {
    {"model.embed_tokens", "transformer.wte"},
    {"model.norm", "transformer.norm_f"},
    {"input_layernorm", "norm_1"},
    {"post_attention_layernorm", "norm_2"},
    {"self_attn.q_proj", "attn.Wqkv", Piece::kQueries},
    {"self_attn.k_proj", "attn.Wqkv", Piece::kKeys},
    {"self_attn.v_proj", "attn.Wqkv", Piece::kValues},
    {"self_attn.o_proj", "attn.out_proj"},
    {"mlp.up_proj", "ffn.up_proj"},
    {"mlp.down_proj", "ffn.down_proj"},
};

}  // namespace outrider
