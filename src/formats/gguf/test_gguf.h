// SPDX-License-Identifier: Apache-2.0
// A writer of valid and invalid GGUF files, for tests only.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outrider::testing_gguf {

template <typename T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// Type numbers of metadata values.
enum : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

struct Value {
  uint32_t type = kU32;
  std::string payload;
  std::vector<size_t> u64_offsets;  // offsets of u64 fields within the payload
};

inline Value u32(uint32_t value) { return {kU32, raw(value), {}}; }
inline Value i32(int32_t value) { return {kI32, raw(value), {}}; }
inline Value u64(uint64_t value) { return {kU64, raw(value), {0}}; }
inline Value f32(float value) { return {kF32, raw(value), {}}; }
inline Value boolean(uint8_t value) { return {kBool, raw(value), {}}; }

inline Value text(std::string_view value) {
  return {kString, raw(static_cast<uint64_t>(value.size())) + std::string(value), {0}};
}

// An array whose elements are already bytes; `count` may lie.
inline Value array(uint32_t element_type, uint64_t count, std::string_view elements) {
  return {kArray, raw(element_type) + raw(count) + std::string(elements), {4}};
}

inline Value strings(const std::vector<std::string>& values) {
  Value result = array(kString, values.size(), "");
  for (const std::string& value : values) {
    result.u64_offsets.push_back(result.payload.size());
    result.payload += raw(static_cast<uint64_t>(value.size())) + value;
  }
  return result;
}

template <typename T>
Value numbers(uint32_t element_type, const std::vector<T>& values) {
  std::string elements;
  for (const T value : values) elements += raw(value);
  return array(element_type, values.size(), elements);
}

struct Tensor {
  std::string name;
  std::vector<uint64_t> dimensions;  // innermost first, as in the file
  uint32_t type = 0;                 // F32
  uint64_t bytes = 0;
  std::optional<uint64_t> offset;  // default: right after the previous tensor
  std::optional<uint32_t> rank;    // default: the number of dimensions
};

struct Serialized {
  std::string bytes;
  std::vector<size_t> u64_offsets;  // offset of every u64 field
};

struct File {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> tensor_count, key_count;  // default: the true counts
  std::vector<std::pair<std::string, Value>> keys;
  std::vector<Tensor> tensors;
  uint64_t alignment = 32;

  Value& key(std::string_view name) {
    for (auto& [key, value] : keys) {
      if (key == name) return value;
    }
    return keys.emplace_back(name, Value{}).second;
  }
  void erase_key(std::string_view name) {
    std::erase_if(keys, [&](const auto& entry) { return entry.first == name; });
  }
  Tensor& tensor(std::string_view name) {
    for (Tensor& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    return tensors.emplace_back(Tensor{std::string(name), {1}, 0, 4, {}, {}});
  }
  void erase_tensor(std::string_view name) {
    std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name == name; });
  }

  Serialized serialize() const;
};

inline Serialized File::serialize() const {
  Serialized out;
  const auto put_u64 = [&](uint64_t value) {
    out.u64_offsets.push_back(out.bytes.size());
    out.bytes += raw(value);
  };
  out.bytes = magic + raw(version);
  put_u64(tensor_count.value_or(tensors.size()));
  put_u64(key_count.value_or(keys.size()));
  for (const auto& [key, value] : keys) {
    put_u64(key.size());
    out.bytes += key + raw(value.type);
    for (const size_t offset : value.u64_offsets) out.u64_offsets.push_back(out.bytes.size() + offset);
    out.bytes += value.payload;
  }
  uint64_t next = 0;
  std::string data;
  for (const Tensor& tensor : tensors) {
    put_u64(tensor.name.size());
    out.bytes += tensor.name + raw(tensor.rank.value_or(static_cast<uint32_t>(tensor.dimensions.size())));
    for (const uint64_t dimension : tensor.dimensions) put_u64(dimension);
    out.bytes += raw(tensor.type);
    put_u64(tensor.offset.value_or(next));
    data.resize(next, '\0');
    data.append(tensor.bytes, '\x3c');
    next = (data.size() + alignment - 1) / alignment * alignment;
  }
  if (!data.empty()) out.bytes.resize((out.bytes.size() + alignment - 1) / alignment * alignment, '\0');
  out.bytes += data;
  return out;
}

// The smallest model that opens: one layer, one head of size 4, SentencePiece tokens.
inline File tiny_model() {
  File file;
  file.keys = {
      {"general.architecture", text("llama")},
      {"llama.block_count", u32(1)},
      {"llama.context_length", u32(16)},
      {"llama.embedding_length", u32(4)},
      {"llama.feed_forward_length", u32(4)},
      {"llama.attention.head_count", u32(1)},
      {"llama.attention.layer_norm_rms_epsilon", f32(1e-5f)},
      {"tokenizer.ggml.model", text("llama")},
      {"tokenizer.ggml.tokens", strings({"<unk>", "<s>", "</s>", "a", "b"})},
      {"tokenizer.ggml.scores", numbers<float>(kF32, {0, 0, 0, -1, -2})},
      {"tokenizer.ggml.token_type", numbers<int32_t>(kI32, {2, 3, 3, 1, 1})},
      {"tokenizer.ggml.eos_token_id", u32(2)},
  };
  file.tensors = {{"token_embd.weight", {4, 5}, 0, 80, {}, {}}, {"output_norm.weight", {4}, 0, 16, {}, {}}};
  for (const char* name : {"attn_norm", "ffn_norm"}) {
    file.tensors.push_back({"blk.0." + std::string(name) + ".weight", {4}, 0, 16, {}, {}});
  }
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
    file.tensors.push_back({"blk.0." + std::string(name) + ".weight", {4, 4}, 0, 64, {}, {}});
  }
  return file;
}

// A model of two layers that differ: the first has a window and smaller heads, the second a larger MLP.
inline File tiny_gemma4() {
  File file = tiny_model();
  for (auto& [key, value] : file.keys) {
    if (key.starts_with("llama.")) key.replace(0, 5, "gemma4");
  }
  file.key("general.architecture") = text("gemma4");
  file.key("gemma4.block_count") = u32(2);
  file.key("gemma4.feed_forward_length") = numbers<int32_t>(kI32, {4, 8});
  file.key("gemma4.attention.head_count_kv") = numbers<int32_t>(kI32, {1, 1});
  file.key("gemma4.attention.key_length") = u32(4);
  file.key("gemma4.attention.key_length_swa") = u32(2);
  file.key("gemma4.attention.sliding_window") = u32(3);
  file.key("gemma4.attention.sliding_window_pattern") = array(kBool, 2, std::string_view("\1\0", 2));
  file.key("gemma4.attention.shared_kv_layers") = u32(0);
  file.key("gemma4.embedding_length_per_layer_input") = u32(2);
  file.key("gemma4.rope.dimension_count_swa") = u32(2);
  file.tensors.clear();
  const auto add = [&](const std::string& name, const std::vector<uint64_t>& dimensions) {
    uint64_t bytes = 4;
    for (const uint64_t dimension : dimensions) bytes *= dimension;
    file.tensors.push_back({name + ".weight", dimensions, 0, bytes, {}, {}});
  };
  add("token_embd", {4, 5});
  add("output_norm", {4});
  add("per_layer_token_embd", {4, 5});
  add("per_layer_model_proj", {4, 4});
  add("per_layer_proj_norm", {2});
  for (const uint64_t layer : {0, 1}) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const uint64_t head = 2 + 2 * layer, ffn = 4 + 4 * layer;
    for (const char* name : {"attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm", "post_norm"})
      add(prefix + name, {4});
    for (const char* name : {"attn_q", "attn_k"}) add(prefix + name, {4, head});
    for (const char* name : {"attn_q_norm", "attn_k_norm"}) add(prefix + name, {head});
    if (layer == 0) add(prefix + "attn_v", {4, head});  // the values of the other layer are its keys
    add(prefix + "attn_output", {head, 4});
    for (const char* name : {"ffn_gate", "ffn_up"}) add(prefix + name, {4, ffn});
    add(prefix + "ffn_down", {ffn, 4});
    add(prefix + "inp_gate", {4, 2});
    add(prefix + "proj", {2, 4});
    add(prefix + "layer_output_scale", {1});
  }
  return file;
}

}  // namespace outrider::testing_gguf
