// SPDX-License-Identifier: Apache-2.0
// The one table of model families: how files name them, what their configurations leave out, and what their
// networks have. A family that the columns describe in full is one row of families.cc and nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/json_file.h"
#include "formats/model_config.h"

namespace outrider {

// Whether the networks of a family have a part: never, where their configuration says so, or always.
enum class Use : uint8_t { kNever, kOptional, kAlways };

// When the sliding window of a Hugging Face configuration counts.
enum class WindowRule : uint8_t {
  kIgnored,
  kStated,    // as stated
  kSwitched,  // as stated where "use_sliding_window" turns it on
};

// The name of a layer's tensor in the Hugging Face files of a family, where it is not the one that
// expected_tensors() gives. Both are without layer and ".weight".
struct TensorName {
  std::string_view expected;
  std::string_view stored;
};

struct ModelFamily {
  std::string_view name;  // ModelConfig::family, and "model_type", or "<name>_text", in config.json
  std::string_view hf_architecture;  // in "architectures" of config.json
  // "general.architecture"; files belong to the first family with it. Empty: GGUF files are not read.
  std::string_view gguf_architecture;
  bool has_interleaved_rows;  // of q and k in GGUF; see has_interleaved_rows() in gguf_config.h

  // Values that the configuration class of Hugging Face assumes for absent keys.
  int64_t vocab_size = 0;  // this and the next: 0: configurations state them
  int64_t heads = 0;
  int64_t max_context;
  int64_t kv_heads;  // 0: as many as heads
  int64_t head_dim;  // 0: hidden_size / heads
  WindowRule window_rule;
  int64_t sliding_window;
  double rope_theta = 10000;

  Use qkv_bias;
  Use output_bias;  // of the attention output
  Use mlp_bias;
  Use qk_norm;
  QkNorm qk_norm_kind = QkNorm::kHead;  // where there is one
  bool tied_embeddings = false;         // where a Hugging Face configuration does not say
  // Each full_period-th layer has no sliding window, each nope_period-th no RoPE; 0: there is no such layer.
  int64_t full_period = 0;
  int64_t nope_period = 0;
  double window_rope_theta = 0;  // base of RoPE in layers with a window; 0: that of all others
  bool fuses_projections =
      false;  // files hold queries, keys and values in one matrix, gate and up in another
  // Traits of the network; Hugging Face configurations that state one of these numbers override it.
  NormTraits norm = {.epsilon = 1e-6f};
  MlpTraits mlp = {};
  ScaleTraits scales = {};
  // Reads the keys of config.json that this family alone has.
  Status (*read_hf_traits)(const JsonObject& root, ModelConfig* config) = nullptr;
  // Fills in the traits that follow from sizes, after all else is read from a file of either format.
  void (*derive_traits)(ModelConfig* config) = nullptr;
  std::span<const TensorName> hf_names = {};
};

// The first family with that value in a column; nullptr: there is none.
const ModelFamily* find_family(std::string_view value,
                               std::string_view ModelFamily::*column = &ModelFamily::name);

// The values of a column, each once, for messages: "llama, qwen2, qwen3", where `last` is the last separator.
std::string list_families(std::string_view ModelFamily::*column, std::string_view last = ", ");

}  // namespace outrider
