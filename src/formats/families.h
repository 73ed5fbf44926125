// SPDX-License-Identifier: Apache-2.0
// The one table of model families: how files name them, what their configurations leave out, and what their
// networks have. A family that the columns describe in full is one row of families.cc and nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/json_object.h"
#include "formats/model_config.h"
#include "formats/stored_layout.h"

namespace outrider {

// Whether the networks of a family have a part: never, where their configuration says so, or always.
enum class Use : uint8_t { kNever, kOptional, kAlways };

// When the sliding window of a Hugging Face configuration counts.
enum class WindowRule : uint8_t {
  kIgnored,
  kStated,    // as stated
  kSwitched,  // as stated where "use_sliding_window" turns it on
};

// The keys of config.json that families spell differently.
struct HfKeys {
  std::string_view hidden_size = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view ffn_size = "intermediate_size";
  std::string_view context = "max_position_embeddings";
  std::string_view epsilon = "rms_norm_eps";
  std::string_view activation = "hidden_act";
};

struct ModelFamily {
  std::string_view name;  // ModelConfig::family, and "model_type", or "<name>_text", in config.json
  std::string_view hf_architecture;  // in "architectures" of config.json
  std::string_view hf_alias = {};    // another spelling of it
  // "general.architecture"; files belong to the first family with it. Empty: GGUF files are not read.
  std::string_view gguf_architecture;
  bool has_interleaved_rows = false;     // of q and k in GGUF; see interleaved_rows.h
  bool has_interleaved_hf_rows = false;  // in Hugging Face files

  // Values that the configuration class of Hugging Face assumes for absent keys.
  int64_t vocab_size = 0;  // this and the next: 0: configurations state them
  int64_t heads = 0;
  int64_t max_context;
  int64_t kv_heads = 0;  // 0: as many as heads
  int64_t head_dim = 0;  // 0: hidden_size / heads
  WindowRule window_rule = WindowRule::kIgnored;
  int64_t sliding_window = 0;
  double rope_theta = 10000;
  double rotated_part = 1;  // of a head

  Use qkv_bias = Use::kOptional;
  Use output_bias = Use::kOptional;  // of the attention output
  Use mlp_bias = Use::kOptional;
  Use qk_norm = Use::kNever;
  QkNorm qk_norm_kind = QkNorm::kHead;  // where there is one
  bool tied_embeddings = false;         // where a Hugging Face configuration does not say
  // Each full_period-th layer has no sliding window, each nope_period-th no RoPE; 0: there is no such layer.
  int64_t full_period = 0;
  int64_t nope_period = 0;
  double window_rope_theta = 0;  // base of RoPE in layers with a window; 0: the base of all others
  const LayerKind* layers = &kAttentionKind;
  const LayerKind* other_layers = nullptr;  // what some layers are instead; null: all are alike
  // Traits of the network; Hugging Face configurations that state one of these numbers override it.
  NormTraits norm = {.epsilon = 1e-6f};
  MlpTraits mlp = {};
  bool has_experts =
      false;  // in GGUF files that state a number of them; config.json is read by read_hf_traits
  ExpertTraits experts = {};
  ScaleTraits scales = {};
  // GGUF files tell parallel layers by their norms: none of the MLP, or two of the attention.
  bool may_be_parallel = false;
  // Layers without a projection of values in a GGUF file use their keys as values.
  bool values_may_be_keys = false;
  // Reads the keys of config.json that only this family has.
  Status (*read_hf_traits)(const JsonObject& root, ModelConfig* config) = nullptr;
  // Fills in the traits that follow from sizes, after all else is read from a file of either format.
  void (*derive_traits)(ModelConfig* config) = nullptr;
  // Fills in the traits that GGUF files leave to their reader.
  void (*derive_gguf_traits)(ModelConfig* config) = nullptr;
  HfKeys hf_keys = {};
  int64_t ffn_factor = 0;  // ffn_size / hidden_size where a configuration does not say; 0: it must
  StoredLayout hf_layout = {};
  bool writes_gguf = true;  // a Hugging Face directory can be written as a GGUF file that others read
  std::span<const TensorName> gguf_names = {};  // before the keys that all GGUF files have
};

// The first family with that value in a column; nullptr: there is none.
const ModelFamily* find_family(std::string_view value,
                               std::string_view ModelFamily::*column = &ModelFamily::name);

// The values of a column, each once, for messages: "llama, qwen2, qwen3", where `last` is the last separator.
std::string list_families(std::string_view ModelFamily::*column, std::string_view last = ", ");

}  // namespace outrider
