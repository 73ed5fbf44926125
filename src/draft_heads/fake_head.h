// SPDX-License-Identifier: Apache-2.0
// Learned drafters with fake weights, written for tests in the layouts that are published.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/fnv1a.h"

namespace outrider {

// The numbers of fake() in tools/head_goldens/common.py: a function of only name and place.
inline std::vector<float> fake_tensor(const std::string& name, const std::vector<int64_t>& shape) {
  const uint64_t seed = fnv1a(name);
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    uint64_t x = seed + (i + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
    const float unit = static_cast<float>(x >> 40) / 16777216.0f;
    values[i] = (unit - 0.5f) * 0.4f + (name.find("norm") == std::string::npos ? 0.0f : 1.0f);
  }
  return values;
}

// A directory of a head's files, which is removed with this object.
struct FakeHead {
  nlohmann::json config = nlohmann::json::object();
  std::map<std::string, std::vector<int64_t>> tensors;   // shape by name, all F32
  std::map<std::string, std::vector<int64_t>> integers;  // I64, of one dimension
  std::map<std::string, std::vector<uint8_t>> flags;     // BOOL, of one dimension
  float scale = 1.0f;                                    // factor of all tensors but norms
  // Matrices hold whole multiples of a scale of their row, as F32 numbers or as bytes with these scales.
  enum class Matrices { kPlain, kRounded, kBytes } matrices = Matrices::kPlain;

  FakeHead() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("outrider_head_" + std::to_string(getpid()) + "_" + std::to_string(count++));
  }
  FakeHead(const FakeHead&) = delete;
  FakeHead& operator=(const FakeHead&) = delete;
  ~FakeHead() { std::filesystem::remove_all(path_); }

  struct LayerShape {
    int64_t hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, mlp = 0;
    bool qkv_bias = false, qk_norm = false;
  };
  void add_layer(const std::string& prefix, const LayerShape& layer) {
    const int64_t q_size = layer.heads * layer.head_dim;
    const int64_t kv_size = layer.kv_heads * layer.head_dim;
    const std::string attention = prefix + "self_attn.";
    const auto add = [&](const std::string& name, int64_t n, int64_t k, bool bias) {
      tensors[name + ".weight"] = {n, k};
      if (bias) tensors[name + ".bias"] = {n};
    };
    tensors[prefix + "input_layernorm.weight"] = {layer.hidden};
    tensors[prefix + "post_attention_layernorm.weight"] = {layer.hidden};
    add(attention + "q_proj", q_size, layer.hidden, layer.qkv_bias);
    add(attention + "k_proj", kv_size, layer.hidden, layer.qkv_bias);
    add(attention + "v_proj", kv_size, layer.hidden, layer.qkv_bias);
    add(attention + "o_proj", layer.hidden, q_size, false);
    if (layer.qk_norm) {
      tensors[attention + "q_norm.weight"] = {layer.head_dim};
      tensors[attention + "k_norm.weight"] = {layer.head_dim};
    }
    add(prefix + "mlp.gate_proj", layer.mlp, layer.hidden, false);
    add(prefix + "mlp.up_proj", layer.mlp, layer.hidden, false);
    add(prefix + "mlp.down_proj", layer.hidden, layer.mlp, false);
  }

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write() const {
    std::filesystem::create_directories(path_);
    nlohmann::json written = config;
    if (matrices == Matrices::kBytes)
      written["quantization_config"] = {{"quant_method", "compressed-tensors"}, {"format", "int-quantized"}};
    std::ofstream(path_ / "config.json") << written.dump();
    nlohmann::json header = nlohmann::json::object();
    std::string data;
    const auto add = [&](const std::string& name, const char* type, const std::vector<int64_t>& shape,
                         const auto& values) {
      const size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
      header[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
    };
    for (const auto& [name, shape] : tensors) {
      std::vector<float> values = fake_tensor(name, shape);
      if (name.find("norm") == std::string::npos) {
        for (float& value : values) value *= scale;
      }
      if (matrices == Matrices::kPlain || shape.size() != 2 || !name.ends_with(".weight")) {
        add(name, "F32", shape, values);
        continue;
      }
      const Rounded rounded = round_rows(values, shape[1]);
      if (matrices == Matrices::kBytes) {
        add(name, "I8", shape, rounded.codes);
        add(name + "_scale", "F32", {shape[0], 1}, rounded.scales);
      } else {
        add(name, "F32", shape, rounded.values);
      }
    }
    for (const auto& [name, values] : integers) add(name, "I64", {std::ssize(values)}, values);
    for (const auto& [name, values] : flags) add(name, "BOOL", {std::ssize(values)}, values);
    const std::string text = header.dump();
    const uint64_t size = text.size();
    std::ofstream file(path_ / "model.safetensors", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&size), sizeof(size)) << text << data;
    return path_;
  }

 private:
  struct Rounded {
    std::vector<int8_t> codes;
    std::vector<float> scales;  // by row
    std::vector<float> values;  // code times scale
  };
  static Rounded round_rows(const std::vector<float>& values, int64_t columns) {
    Rounded rounded;
    for (auto row = values.begin(); row != values.end(); row += columns) {
      float largest = 0.0f;
      std::for_each(row, row + columns, [&](float value) { largest = std::max(largest, std::abs(value)); });
      rounded.scales.push_back(largest / 127.0f);
      std::for_each(row, row + columns, [&](float value) {
        rounded.codes.push_back(static_cast<int8_t>(std::lround(value / rounded.scales.back())));
        rounded.values.push_back(static_cast<float>(rounded.codes.back()) * rounded.scales.back());
      });
    }
    return rounded;
  }

  std::filesystem::path path_;
};

}  // namespace outrider
