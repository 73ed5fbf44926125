// SPDX-License-Identifier: Apache-2.0
// GGUF files of heads with fake weights, as llama.cpp's converter writes them, for tests only.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "draft_heads/fake_head.h"
#include "formats/gguf/test_gguf.h"

namespace outrider {

inline constexpr uint32_t kIntegers = 27;  // I64

// Published parts of names, and the files' parts.
inline const std::vector<std::pair<std::string, std::string>> kFileNames = {
    {"midlayer.", "blk.0."},
    {"layers.", "blk."},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"embed_tokens", "token_embd"},
    {"lm_head", "output"},
    {"markov_head.", ""},
    {"confidence_head.proj", "conf_proj"},
    {"candidate_selector.hidden_projection", "selector_hidden"},
    {"candidate_selector.predecessor_codebook", "selector_predecessor.weight"},
    {"candidate_selector.successor_codebook", "selector_successor.weight"},
    {"attention_conv.base_kernel", "attn_conv_base"},
    {"attention_conv.kernel_projection", "attn_conv_proj"},
    {"mlp_conv.base_kernel", "ffn_conv_base"},
    {"mlp_conv.kernel_projection", "ffn_conv_proj"},
};

inline std::string file_name_of(std::string name, bool is_eagle) {
  for (const auto& [published, own] : kFileNames) {
    const size_t at = name.find(published);
    if (at != std::string::npos) name.replace(at, published.size(), own);
  }
  if (name == "norm.weight") return "output_norm.weight";
  if (is_eagle && name == "blk.0.hidden_norm.weight") return "blk.0.attn_norm_2.weight";
  return name == "hidden_norm.weight" || name == "input_norm.weight" ? "enc.output_norm.weight" : name;
}

// Rows i and i + half of each head side by side, as Llama's converter puts them.
inline std::vector<float> interleaved(const std::vector<float>& values, int64_t cols, int64_t head_dim) {
  std::vector<float> out(values.size());
  for (int64_t row = 0; row < std::ssize(values) / cols; ++row) {
    const int64_t in_head = row % head_dim, half = head_dim / 2;
    const int64_t place = row - in_head + (in_head < half ? 2 * in_head : 2 * (in_head - half) + 1);
    std::copy_n(values.begin() + row * cols, cols, out.begin() + place * cols);
  }
  return out;
}

// A file of the head's tensors with these keys.
class GgufFileOf {
 public:
  GgufFileOf(const FakeHead& made, testing_gguf::File keys, const std::string& architecture, int64_t head_dim)
      : path_(made.path().string() + ".gguf"), file_(std::move(keys)) {
    const bool is_eagle = architecture == "eagle3";
    file_.key("general.architecture") = testing_gguf::text(architecture);
    for (const auto& [name, shape] : made.tensors) {
      std::vector<float> values = fake_tensor(name, shape);
      const bool turns = name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
      if (is_eagle && turns) values = interleaved(values, shape.back(), head_dim);
      add(file_name_of(name, is_eagle), shape, 0, values);
    }
    for (const auto& [name, offsets] : made.integers) {
      std::vector<int64_t> ids = offsets;
      for (size_t row = 0; row < ids.size(); ++row) ids[row] += static_cast<int64_t>(row);
      add(name, {std::ssize(ids)}, kIntegers, ids);
    }
    std::string bytes = file_.serialize().bytes;
    bytes.replace(bytes.size() - data_.size(), data_.size(), data_);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~GgufFileOf() { std::filesystem::remove(path_); }
  GgufFileOf(const GgufFileOf&) = delete;
  GgufFileOf& operator=(const GgufFileOf&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  template <typename T>
  void add(const std::string& name, const std::vector<int64_t>& shape, uint32_t type,
           const std::vector<T>& values) {
    const size_t bytes = values.size() * sizeof(T);
    data_.resize((data_.size() + 31) / 32 * 32, '\0');
    data_.append(reinterpret_cast<const char*>(values.data()), bytes);
    file_.tensors.push_back({name,
                             std::vector<uint64_t>(shape.rbegin(), shape.rend()),
                             type,
                             static_cast<uint64_t>(bytes),
                             {},
                             {}});
  }

  std::filesystem::path path_;
  testing_gguf::File file_;
  std::string data_;
};

inline testing_gguf::File keys_of(const std::string& architecture, const nlohmann::json& layers) {
  testing_gguf::File file;
  const auto number = [&](const std::string& key, const char* from) {
    file.key(architecture + "." + key) = testing_gguf::u32(layers.at(from).get<uint32_t>());
  };
  number("embedding_length", "hidden_size");
  number("block_count", "num_hidden_layers");
  number("feed_forward_length", "intermediate_size");
  number("attention.head_count", "num_attention_heads");
  number("attention.head_count_kv", "num_key_value_heads");
  number("attention.key_length", "head_dim");
  number("vocab_size", "vocab_size");
  file.key(architecture + ".context_length") = testing_gguf::u32(256);
  file.key(architecture + ".attention.layer_norm_rms_epsilon") = testing_gguf::f32(1e-5f);
  file.key(architecture + ".rope.freq_base") = testing_gguf::f32(layers.value("rope_theta", 10000.0f));
  return file;
}

inline testing_gguf::File eagle_keys(const nlohmann::json& golden) {
  testing_gguf::File keys = keys_of("eagle3", golden["config"]);
  keys.key("eagle3.target_layers") = testing_gguf::numbers<int32_t>(testing_gguf::kI32, {0, 1, 2});
  keys.key("eagle3.target_hidden_size") = testing_gguf::u32(64);
  keys.key("eagle3.norm_before_residual") = testing_gguf::boolean(0);
  return keys;
}

}  // namespace outrider
