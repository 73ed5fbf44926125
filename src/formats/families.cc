// SPDX-License-Identifier: Apache-2.0
#include "formats/families.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include "formats/family_traits.h"

namespace outrider {
namespace {

constexpr TensorName kGemmaNames[] = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                                      {"post_attention_layernorm", "pre_feedforward_layernorm"},
                                      {"post_mlp_layernorm", "post_feedforward_layernorm"},
                                      {"layer_scalar", "layer_scalar", Piece::kBuffer}};

constexpr TensorName kOlmo2Names[] = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                                      {"post_mlp_layernorm", "post_feedforward_layernorm"}};

constexpr TensorName kFusedGateNames[] = {{"mlp.gate_proj", "mlp.gate_up_proj", Piece::kGate},
                                          {"mlp.up_proj", "mlp.gate_up_proj", Piece::kUp}};

constexpr TensorName kPhi3Names[] = {{"self_attn.q_proj", "self_attn.qkv_proj", Piece::kQueries},
                                     {"self_attn.k_proj", "self_attn.qkv_proj", Piece::kKeys},
                                     {"self_attn.v_proj", "self_attn.qkv_proj", Piece::kValues},
                                     {"mlp.gate_proj", "mlp.gate_up_proj", Piece::kGate},
                                     {"mlp.up_proj", "mlp.gate_up_proj", Piece::kUp}};

constexpr TensorName kGraniteHybridNames[] = {{"mlp.gate_proj", "shared_mlp.input_linear", Piece::kGate},
                                              {"mlp.up_proj", "shared_mlp.input_linear", Piece::kUp},
                                              {"mlp.down_proj", "shared_mlp.output_linear"}};

constexpr TensorName kStableLmNames[] = {{"self_attn.q_norm", "self_attn.q_layernorm.norms"},
                                         {"self_attn.k_norm", "self_attn.k_layernorm.norms"}};

constexpr TensorName kOptNames[] = {
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

constexpr HfKeys kGpt2Keys = {.hidden_size = "n_embd",
                              .layers = "n_layer",
                              .heads = "n_head",
                              .ffn_size = "n_inner",
                              .context = "n_positions",
                              .epsilon = "layer_norm_epsilon",
                              .activation = "activation_function"};

constexpr TensorName kGpt2Names[] = {
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

constexpr TensorName kStarcoder2Names[] = {{"mlp.up_proj", "mlp.c_fc"}, {"mlp.down_proj", "mlp.c_proj"}};

constexpr TensorName kFalconNames[] = {
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
constexpr TensorName kFalconGgufNames[] = {{"input_layernorm", "attn_norm_2"},
                                           {"input_layernorm", "attn_norm"},
                                           {"post_attention_layernorm", "attn_norm"}};

constexpr HfKeys kMptKeys = {.hidden_size = "d_model",
                             .layers = "n_layers",
                             .heads = "n_heads",
                             .ffn_size = "",
                             .context = "max_seq_len",
                             .epsilon = "layer_norm_epsilon",
                             .activation = ""};

constexpr TensorName kMptNames[] = {
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

constexpr ModelFamily kFamilies[] = {
    // Llama 2, 3, 3.1, 3.2 and models of their form (SmolLM2).
    {.name = "llama",
     .hf_architecture = "LlamaForCausalLM",
     .gguf_architecture = "llama",
     .has_interleaved_rows = true,
     .max_context = 2048},
    // Early versions have a sliding window. GGUF files of Mistral call themselves llama.
    {.name = "mistral",
     .hf_architecture = "MistralForCausalLM",
     .gguf_architecture = "llama",
     .has_interleaved_rows = true,
     .max_context = 131072,
     .kv_heads = 8,
     .window_rule = WindowRule::kStated,
     .sliding_window = 4096,
     .qkv_bias = Use::kNever,
     .output_bias = Use::kNever,
     .mlp_bias = Use::kNever},
    // Qwen2 and Qwen2.5.
    {.name = "qwen2",
     .hf_architecture = "Qwen2ForCausalLM",
     .gguf_architecture = "qwen2",
     .max_context = 32768,
     .kv_heads = 32,
     .window_rule = WindowRule::kSwitched,
     .sliding_window = 4096,
     .qkv_bias = Use::kAlways,
     .output_bias = Use::kNever,
     .mlp_bias = Use::kNever},
    // The dense models of Qwen3; head_dim is independent of hidden_size.
    {.name = "qwen3",
     .hf_architecture = "Qwen3ForCausalLM",
     .gguf_architecture = "qwen3",
     .max_context = 32768,
     .kv_heads = 32,
     .head_dim = 128,
     .window_rule = WindowRule::kSwitched,
     .sliding_window = 4096,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kAlways},
    // OLMo 2: norms after attention and MLP, and of all queries and keys at once.
    {.name = "olmo2",
     .hf_architecture = "Olmo2ForCausalLM",
     .gguf_architecture = "olmo2",
     .max_context = 2048,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kAlways,
     .qk_norm_kind = QkNorm::kWhole,
     .norm = {.placement = NormPlacement::kOutput, .epsilon = 1e-5f},
     .hf_layout = {.names = kOlmo2Names}},
    // Granite 3: constant factors.
    {.name = "granite",
     .hf_architecture = "GraniteForCausalLM",
     .gguf_architecture = "granite",
     .has_interleaved_rows = true,
     .max_context = 2048,
     .read_hf_traits = read_granite_traits},
    // Every fourth layer does not rotate queries and keys.
    {.name = "smollm3",
     .hf_architecture = "SmolLM3ForCausalLM",
     .gguf_architecture = "smollm3",
     .has_interleaved_rows = true,
     .max_context = 32768,
     .kv_heads = 4,
     .window_rule = WindowRule::kSwitched,
     .rope_theta = 2000000,
     .tied_embeddings = true,
     .nope_period = 4},
    // Phi-3, Phi-3.5, Phi-4 and Phi-4-mini: LongRoPE, partly rotated heads, fused matrices.
    {.name = "phi3",
     .hf_architecture = "Phi3ForCausalLM",
     .gguf_architecture = "phi3",
     .max_context = 4096,
     .window_rule = WindowRule::kStated,
     .qkv_bias = Use::kNever,
     .output_bias = Use::kNever,
     .mlp_bias = Use::kNever,
     .norm = {.epsilon = 1e-5f},
     .hf_layout = {.names = kPhi3Names},
     .writes_gguf = false},
    // Ministral 8B of 2024: layers with and without a sliding window.
    {.name = "ministral",
     .hf_architecture = "MinistralForCausalLM",
     .gguf_architecture = "llama",
     .has_interleaved_rows = true,
     .max_context = 131072,
     .kv_heads = 8,
     .window_rule = WindowRule::kStated,
     .sliding_window = 4096,
     .qkv_bias = Use::kNever,
     .output_bias = Use::kNever,
     .mlp_bias = Use::kNever},
    // Ministral 3: YaRN, and queries that grow with their position.
    {.name = "ministral3",
     .hf_architecture = "Ministral3ForCausalLM",
     .gguf_architecture = "mistral3",
     .has_interleaved_rows = true,
     .max_context = 262144,
     .kv_heads = 8,
     .head_dim = 128,
     .window_rule = WindowRule::kStated,
     .qkv_bias = Use::kNever,
     .output_bias = Use::kNever,
     .mlp_bias = Use::kNever,
     .norm = {.epsilon = 1e-5f},
     .read_hf_traits = read_query_temperature},
    // Gemma 2: norms before and after attention and MLP, soft caps, a window in every second layer.
    {.name = "gemma2",
     .hf_architecture = "Gemma2ForCausalLM",
     .gguf_architecture = "gemma2",
     .max_context = 8192,
     .kv_heads = 4,
     .head_dim = 256,
     .window_rule = WindowRule::kStated,
     .sliding_window = 4096,
     .mlp_bias = Use::kNever,
     .tied_embeddings = true,
     .full_period = 2,
     .norm = {.placement = NormPlacement::kBoth, .epsilon = 1e-6f, .adds_one = true},
     .mlp = {.activation = Activation::kGeluTanh},
     .read_hf_traits = read_gemma2_traits,
     .derive_traits = derive_gemma2_scales,
     .hf_layout = {.names = kGemmaNames}},
    // Gemma 3, text: five layers of six have a window and a RoPE base of their own.
    {.name = "gemma3",
     .hf_architecture = "Gemma3ForCausalLM",
     .gguf_architecture = "gemma3",
     .vocab_size = 262208,
     .heads = 8,
     .max_context = 131072,
     .kv_heads = 4,
     .head_dim = 256,
     .window_rule = WindowRule::kStated,
     .sliding_window = 4096,
     .rope_theta = 1000000,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kAlways,
     .tied_embeddings = true,
     .full_period = 6,
     .window_rope_theta = 10000,
     .norm = {.placement = NormPlacement::kBoth, .epsilon = 1e-6f, .adds_one = true},
     .mlp = {.activation = Activation::kGeluTanh},
     .read_hf_traits = read_gemma3_traits,
     .derive_traits = derive_gemma3_scales,
     .hf_layout = {.names = kGemmaNames}},
    // The dense models of Gemma 4, text: norms of values, larger heads without a window, layers that read the
    // keys and values of others, inputs for every layer.
    {.name = "gemma4",
     .hf_architecture = "Gemma4ForCausalLM",
     .gguf_architecture = "",
     .vocab_size = 262144,
     .heads = 8,
     .max_context = 131072,
     .kv_heads = 4,
     .head_dim = 256,
     .window_rule = WindowRule::kStated,
     .sliding_window = 512,
     .rope_theta = 1000000,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kAlways,
     .tied_embeddings = true,
     .full_period = 6,
     .window_rope_theta = 10000,
     .norm = {.placement = NormPlacement::kBoth, .epsilon = 1e-6f},
     .mlp = {.activation = Activation::kGeluTanh},
     .read_hf_traits = read_gemma4_traits,
     .derive_traits = derive_gemma4_traits,
     .hf_layout = {.names = kGemmaNames}},
    // The dense models of Granite 4. Their GGUF files call themselves granite.
    {.name = "granitemoehybrid",
     .hf_architecture = "GraniteMoeHybridForCausalLM",
     .gguf_architecture = "granite",
     .has_interleaved_rows = true,
     .max_context = 2048,
     .mlp_bias = Use::kNever,
     .read_hf_traits = read_granite_hybrid_traits,
     .hf_keys = {.ffn_size = "shared_intermediate_size"},
     .hf_layout = {.names = kGraniteHybridNames}},
    // GLM-4 of 2024: half of each head turns, in neighbouring pairs.
    {.name = "glm",
     .hf_architecture = "GlmForCausalLM",
     .gguf_architecture = "",
     .has_interleaved_hf_rows = true,
     .max_context = 131072,
     .kv_heads = 2,
     .head_dim = 128,
     .rotated_part = 0.5,
     .output_bias = Use::kNever,
     .mlp_bias = Use::kNever,
     .norm = {.epsilon = 1.5625e-7f},
     .read_hf_traits = read_glm_traits,
     .hf_layout = {.names = kFusedGateNames},
     .writes_gguf = false},
    // GLM-4-0414: norms before and after attention and MLP.
    {.name = "glm4",
     .hf_architecture = "Glm4ForCausalLM",
     .gguf_architecture = "glm4",
     .has_interleaved_rows = true,
     .has_interleaved_hf_rows = true,
     .max_context = 131072,
     .kv_heads = 2,
     .head_dim = 128,
     .rotated_part = 0.5,
     .output_bias = Use::kNever,
     .mlp_bias = Use::kNever,
     .norm = {.placement = NormPlacement::kBoth, .epsilon = 1.5625e-7f},
     .read_hf_traits = read_glm_traits,
     .hf_layout = {.names = kFusedGateNames},
     .writes_gguf = false},
    // StableLM 2 and StableLM 3B.
    {.name = "stablelm",
     .hf_architecture = "StableLmForCausalLM",
     .gguf_architecture = "stablelm",
     .max_context = 4096,
     .kv_heads = 32,
     .rotated_part = 0.25,
     .output_bias = Use::kNever,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kOptional,
     .qk_norm_kind = QkNorm::kEach,
     .norm = {.kind = NormKind::kLayer, .epsilon = 1e-5f, .has_bias = true},
     .may_be_parallel = true,
     .read_hf_traits = read_stablelm_traits,
     .hf_keys = {.epsilon = "layer_norm_eps"},
     .hf_layout = {.names = kStableLmNames},
     .writes_gguf = false},
    {.name = "opt",
     .hf_architecture = "OPTForCausalLM",
     .gguf_architecture = "",
     .max_context = 2048,
     .tied_embeddings = true,
     .norm = {.kind = NormKind::kLayer, .epsilon = 1e-5f},
     .mlp = {.activation = Activation::kRelu, .is_gated = false},
     .read_hf_traits = read_opt_traits,
     .hf_keys = {.ffn_size = "ffn_dim", .activation = "activation_function"},
     .hf_layout = {.layers = "model.decoder.layers.", .names = kOptNames},
     .writes_gguf = false},
    {.name = "gpt2",
     .hf_architecture = "GPT2LMHeadModel",
     .gguf_architecture = "gpt2",
     .max_context = 1024,
     .tied_embeddings = true,
     .norm = {.kind = NormKind::kLayer, .epsilon = 1e-5f, .has_bias = true},
     .mlp = {.activation = Activation::kGeluTanh, .is_gated = false},
     .read_hf_traits = read_gpt2_traits,
     .hf_keys = kGpt2Keys,
     .ffn_factor = 4,
     .hf_layout = {.layers = "transformer.h.", .names = kGpt2Names, .is_transposed = true},
     .writes_gguf = false},
    // StarCoder and SantaCoder: GPT-2 with one key-value head.
    {.name = "gpt_bigcode",
     .hf_architecture = "GPTBigCodeForCausalLM",
     .gguf_architecture = "starcoder",
     .max_context = 1024,
     .tied_embeddings = true,
     .norm = {.kind = NormKind::kLayer, .epsilon = 1e-5f, .has_bias = true},
     .mlp = {.activation = Activation::kGeluTanh, .is_gated = false},
     .read_hf_traits = read_starcoder_traits,
     .hf_keys = kGpt2Keys,
     .ffn_factor = 4,
     .hf_layout = {.layers = "transformer.h.", .names = kGpt2Names, .fused_rows = FusedRows::kGroups},
     .writes_gguf = false},
    {.name = "starcoder2",
     .hf_architecture = "Starcoder2ForCausalLM",
     .gguf_architecture = "starcoder2",
     .max_context = 4096,
     .kv_heads = 2,
     .window_rule = WindowRule::kStated,
     .tied_embeddings = true,
     .norm = {.kind = NormKind::kLayer, .epsilon = 1e-5f, .has_bias = true},
     .mlp = {.activation = Activation::kGeluTanh, .is_gated = false},
     .read_hf_traits = read_starcoder2_traits,
     .hf_keys = {.epsilon = "norm_epsilon"},
     .hf_layout = {.names = kStarcoder2Names},
     .writes_gguf = false},
    {.name = "falcon",
     .hf_architecture = "FalconForCausalLM",
     .gguf_architecture = "falcon",
     .max_context = 2048,
     .kv_heads = 1,
     .tied_embeddings = true,
     .norm = {.kind = NormKind::kLayer, .epsilon = 1e-5f, .has_bias = true},
     .mlp = {.activation = Activation::kGelu, .is_gated = false},
     .may_be_parallel = true,
     .read_hf_traits = read_falcon_traits,
     .hf_keys = {.ffn_size = "ffn_hidden_size", .epsilon = "layer_norm_epsilon", .activation = "activation"},
     .ffn_factor = 4,
     .hf_layout = {.layers = "transformer.h.", .names = kFalconNames, .fused_rows = FusedRows::kGroups},
     .writes_gguf = false,
     .gguf_names = kFalconGgufNames},
    {.name = "mpt",
     .hf_architecture = "MptForCausalLM",
     .gguf_architecture = "mpt",
     .max_context = 2048,
     .tied_embeddings = true,
     .norm = {.kind = NormKind::kLayer, .epsilon = 1e-5f},
     .mlp = {.activation = Activation::kGelu, .is_gated = false},
     .read_hf_traits = read_mpt_traits,
     .hf_keys = kMptKeys,
     .ffn_factor = 4,
     .hf_layout = {.layers = "transformer.blocks.", .names = kMptNames},
     .writes_gguf = false},
};

}  // namespace

const ModelFamily* find_family(std::string_view value, std::string_view ModelFamily::*column) {
  const auto found = std::ranges::find(kFamilies, value, column);
  return value.empty() || found == std::end(kFamilies) ? nullptr : &*found;
}

std::string list_families(std::string_view ModelFamily::*column, std::string_view last) {
  std::vector<std::string_view> names;
  for (const ModelFamily& family : kFamilies) {
    const std::string_view name = family.*column;
    if (!name.empty() && find_family(name, column) == &family) names.push_back(name);
  }
  std::string list;
  for (const std::string_view name : names)
    list.append(list.empty() ? "" : name == names.back() ? last : ", ").append(name);
  return list;
}

}  // namespace outrider
