// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/torch_target.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "training/core/autograd_ops.h"
#include "training/head_data/head_data.h"

namespace outrider::training {
namespace {

// int64 [windows, length]; shorter windows are padded with zeros.
at::Tensor padded_tokens(std::span<const std::span<const TokenId>> windows) {
  size_t longest = 0;
  for (const auto& window : windows) longest = std::max(longest, window.size());
  const int64_t length = padded_length(static_cast<int64_t>(longest));
  at::Tensor tokens = at::zeros({std::ssize(windows), length}, at::kLong);
  for (size_t i = 0; i < windows.size(); ++i)
    std::copy(windows[i].begin(), windows[i].end(),
              tokens.data_ptr<int64_t>() + static_cast<int64_t>(i) * length);
  return tokens;
}

// bool [1, length, length]: 1 where row i does not see entry j.
at::Tensor outside_of_window(int64_t length, int64_t window, at::Device device) {
  const at::Tensor place = at::arange(length, at::TensorOptions().dtype(at::kLong).device(device));
  const at::Tensor distance = place.unsqueeze(1) - place.unsqueeze(0);
  return at::logical_or(distance.lt(0), distance.ge(window)).unsqueeze(0);
}

}  // namespace

TorchTarget::TorchTarget(const ModelConfig& config, const WeightReader& weight, at::Device device,
                         at::ScalarType products)
    : config_(config), device_(device), type_(products) {
  embedding_ = moved(weight("model.embed_tokens.weight"), type_);
  final_norm_ = moved(weight("model.norm.weight"), at::kFloat);
  for (int64_t i = 0; i < config_.layer_count; ++i) {
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    const auto norm = [&](const char* name) { return moved(weight(prefix + name + ".weight"), at::kFloat); };
    layers_.push_back({.input_norm = norm("input_layernorm"),
                       .mlp_norm = norm("post_attention_layernorm"),
                       .q_norm = norm("self_attn.q_norm"),
                       .k_norm = norm("self_attn.k_norm"),
                       .qkv = affine(weight, prefix + "self_attn.", {"q_proj", "k_proj", "v_proj"}),
                       .output = affine(weight, prefix + "self_attn.", {"o_proj"}),
                       .gate_up = affine(weight, prefix + "mlp.", {"gate_proj", "up_proj"}),
                       .down = affine(weight, prefix + "mlp.", {"down_proj"})});
  }
}

at::Tensor TorchTarget::moved(const at::Tensor& weight, at::ScalarType type) const {
  return weight.defined() ? weight.to(type).to(device_) : weight;
}

TorchTarget::Affine TorchTarget::affine(const WeightReader& weight, const std::string& prefix,
                                        std::initializer_list<const char*> names) const {
  std::vector<at::Tensor> weights, biases;
  for (const char* name : names) {
    weights.push_back(weight(prefix + name + ".weight"));
    at::Tensor bias = weight(prefix + name + ".bias");
    if (bias.defined()) biases.push_back(std::move(bias));
  }
  return {moved(at::cat(weights), type_), biases.empty() ? at::Tensor() : moved(at::cat(biases), type_)};
}

at::Tensor TorchTarget::normed_heads(const at::Tensor& heads, const at::Tensor& norm) const {
  if (!norm.defined()) return heads;
  const at::Tensor rows = heads.reshape({-1, config_.head_dim}).to(at::kFloat);
  return normalized(rows, norm, config_.norm.epsilon, type_).view(heads.sizes());
}

TorchTarget::Heads TorchTarget::heads(const Layer& layer, const at::Tensor& normed,
                                      const Rotations& rotations) const {
  const int64_t q_heads = config_.head_count, kv_heads = config_.kv_head_count;
  const int64_t length = rotations.cos.size(0);
  const at::Tensor qkv = layer.qkv(normed).view({-1, length, q_heads + 2 * kv_heads, config_.head_dim});
  const auto rotated = [&](const at::Tensor& x) { return rotate(x, rotations.cos, rotations.sin); };
  const auto cached = [&](const at::Tensor& x) { return x.to(at::kBFloat16).to(type_); };
  return {rotated(normed_heads(qkv.narrow(2, 0, q_heads), layer.q_norm)),
          cached(rotated(normed_heads(qkv.narrow(2, q_heads, kv_heads), layer.k_norm))),
          cached(qkv.narrow(2, q_heads + kv_heads, kv_heads))};
}

at::Tensor TorchTarget::attention(const Heads& heads) const {
  const int64_t length = heads.q.size(1), window = config_.layer_traits.front().window;
  if (window == 0 || window >= length) return causal_attention(heads.q, heads.k, heads.v);
  return masked_attention(heads.q, heads.k, heads.v, outside_of_window(length, window, device_));
}

at::Tensor TorchTarget::forward(const at::Tensor& tokens, const Rotations& rotations, const Attend& attend,
                                const Tap& tap) const {
  const int64_t rows = tokens.size(0);
  at::Tensor x = at::embedding(embedding_, tokens).to(at::kFloat);
  at::Tensor delta = at::zeros(x.sizes(), x.options().dtype(type_));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const NormedResidual in = residual_norm(x, delta, layer.input_norm, config_.norm.epsilon);
    if (tap) tap(static_cast<int64_t>(i), in.sum);
    const at::Tensor mixed = attend(i, heads(layer, in.normed, rotations)).reshape({rows, -1});
    const NormedResidual middle =
        residual_norm(in.sum, layer.output(mixed), layer.mlp_norm, config_.norm.epsilon);
    x = middle.sum;
    delta = layer.down(swiglu(layer.gate_up(middle.normed)));
  }
  const NormedResidual out = residual_norm(x, delta.to(at::kFloat), final_norm_, config_.norm.epsilon);
  if (tap) tap(config_.layer_count, out.sum);
  return out.normed;
}

std::vector<TargetStates> TorchTarget::run(std::span<const std::span<const TokenId>> windows,
                                           const FeatureNeeds& needs) const {
  const at::NoGradGuard no_grad;
  const at::Tensor tokens = padded_tokens(windows).to(device_);
  const int64_t count = tokens.size(0), length = tokens.size(1);
  const auto by_window = [&](const at::Tensor& all) { return all.view({count, length, -1}); };
  std::vector<at::Tensor> taps, entries;
  const auto attend = [&](size_t, const Heads& own) {
    if (needs.keys_values) entries.push_back(at::stack({own.k, own.v}, 3));
    return attention(own);
  };
  const auto tap = [&](int64_t layer, const at::Tensor& stream) {
    if (std::find(needs.taps.begin(), needs.taps.end(), layer) != needs.taps.end()) taps.push_back(stream);
  };
  const at::Tensor hidden =
      by_window(forward(tokens.flatten(), make_rotations(config_, length, device_), attend, tap));
  const at::Tensor features = taps.empty() ? at::Tensor() : by_window(at::cat(taps, -1));
  const at::Tensor keys_values = entries.empty() ? at::Tensor() : at::stack(entries, 2).to(at::kFloat);
  std::vector<TargetStates> states;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t known = std::ssize(windows[static_cast<size_t>(i)]);
    const auto own = [&](const at::Tensor& all) {
      return all.defined() ? all.select(0, i).narrow(0, 0, known) : all;
    };
    states.push_back({.hidden = own(hidden), .features = own(features), .keys_values = own(keys_values)});
  }
  return states;
}

int64_t TorchTarget::bytes_per_entry() const {
  return 2 * config_.layer_count * config_.kv_head_count * config_.head_dim *
         static_cast<int64_t>(c10::elementSize(type_));
}

TorchTarget::Memory TorchTarget::make_memory(int64_t texts, int64_t capacity) const {
  Memory memory;
  const auto options = at::TensorOptions().dtype(type_).device(device_);
  for (int64_t i = 0; i < config_.layer_count; ++i) {
    for (std::vector<at::Tensor>* part : {&memory.keys, &memory.values})
      part->push_back(at::zeros({texts, config_.kv_head_count, capacity, config_.head_dim}, options));
  }
  memory.rotations = make_rotations(config_, capacity, device_);
  return memory;
}

void TorchTarget::Memory::keep(const at::Tensor& rows) {
  for (std::vector<at::Tensor>* part : {&keys, &values}) {
    for (at::Tensor& layer : *part) layer = layer.index_select(0, rows);
  }
}

at::Tensor TorchTarget::read_prompts(std::span<const std::span<const TokenId>> prompts, int64_t first,
                                     Memory& memory) const {
  const at::NoGradGuard no_grad;
  const at::Tensor tokens = padded_tokens(prompts).to(device_);
  const int64_t count = tokens.size(0), length = tokens.size(1);
  // The padding may be longer than the memory.
  const int64_t kept = std::min(length, memory.capacity());
  const auto attend = [&](size_t layer, const Heads& own) {
    const auto keep = [&](at::Tensor& all, const at::Tensor& entries) {
      all.narrow(0, first, count).narrow(2, 0, kept).copy_(entries.narrow(1, 0, kept).transpose(1, 2));
    };
    keep(memory.keys[layer], own.k);
    keep(memory.values[layer], own.v);
    return attention(own);
  };
  const at::Tensor states = forward(tokens.flatten(), make_rotations(config_, length, device_), attend);
  std::vector<int64_t> last;
  for (int64_t i = 0; i < count; ++i)
    last.push_back(i * length + std::ssize(prompts[static_cast<size_t>(i)]) - 1);
  return states.index_select(0, at::tensor(last, at::kLong).to(device_));
}

// Attention of one query per text to the entries of the memory, which end where `unseen`, bool [texts, 1,
// entries], ends.
at::Tensor TorchTarget::attention_to(const Heads& own, size_t layer, const at::Tensor& unseen,
                                     Memory& memory) const {
  const int64_t texts = unseen.size(0), entries = unseen.size(2), dim = config_.head_dim;
  const int64_t kv_heads = config_.kv_head_count, group = config_.head_count / kv_heads;
  const auto seen = [&](const at::Tensor& all) {  // [texts * kv_heads, entries, head_dim]
    return all.view({texts * kv_heads, -1, dim}).narrow(1, 0, entries);
  };
  const at::Tensor queries = own.q.reshape({texts * kv_heads, group, dim});
  const at::Tensor scores = at::bmm(queries, seen(memory.keys[layer]).transpose(1, 2)).to(at::kFloat) /
                            std::sqrt(static_cast<double>(dim));
  const at::Tensor distribution =
      at::softmax(scores.view({texts, kv_heads * group, entries})
                      .masked_fill(unseen, -std::numeric_limits<double>::infinity()),
                  -1)
          .to(type_);
  return at::bmm(distribution.view({texts * kv_heads, group, entries}), seen(memory.values[layer]));
}

at::Tensor TorchTarget::append(const at::Tensor& tokens, const at::Tensor& positions, int64_t entries,
                               Memory& memory) const {
  const at::NoGradGuard no_grad;
  const int64_t texts = tokens.size(0), kv_heads = config_.kv_head_count, dim = config_.head_dim;
  const int64_t window = config_.layer_traits.front().window;
  const auto whole = at::TensorOptions().dtype(at::kLong).device(device_);
  const at::Tensor distance = positions.unsqueeze(1) - at::arange(entries, whole);
  at::Tensor unseen = distance.lt(0);
  if (window > 0) unseen = at::logical_or(unseen, distance.ge(window));
  // Rows of keys.view({-1, head_dim}): one of every text and head.
  const at::Tensor slots = (at::arange(texts * kv_heads, whole).view({texts, kv_heads}) * memory.capacity() +
                            positions.unsqueeze(1))
                               .flatten();
  const auto attend = [&](size_t layer, const Heads& own) {
    memory.keys[layer].view({-1, dim}).index_copy_(0, slots, own.k.reshape({-1, dim}));
    memory.values[layer].view({-1, dim}).index_copy_(0, slots, own.v.reshape({-1, dim}));
    return attention_to(own, layer, unseen.unsqueeze(1), memory);
  };
  const Rotations rotations{memory.rotations.cos.index_select(0, positions),
                            memory.rotations.sin.index_select(0, positions)};
  return forward(tokens, rotations, attend);
}

}  // namespace outrider::training
