// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/torch_target.h"

#include <ATen/ATen.h>

#include <algorithm>

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

std::vector<TargetStates> TorchTarget::run(std::span<const std::span<const TokenId>> windows,
                                           const FeatureNeeds& needs) const {
  const at::NoGradGuard no_grad;
  const at::Tensor tokens = padded_tokens(windows).to(device_);
  const int64_t count = tokens.size(0), length = tokens.size(1), rows = count * length;
  const auto by_window = [&](const at::Tensor& all) { return all.view({count, length, -1}); };
  const Rotations rotations = make_rotations(config_, length, device_);
  std::vector<at::Tensor> taps, entries;
  const auto tap = [&](int64_t layer, const at::Tensor& states) {
    if (std::find(needs.taps.begin(), needs.taps.end(), layer) != needs.taps.end()) taps.push_back(states);
  };
  at::Tensor x = at::embedding(embedding_, tokens.flatten()).to(at::kFloat);
  at::Tensor delta = at::zeros(x.sizes(), x.options().dtype(type_));
  for (int64_t i = 0; i < config_.layer_count; ++i) {
    const Layer& layer = layers_[static_cast<size_t>(i)];
    const NormedResidual in = residual_norm(x, delta, layer.input_norm, config_.norm.epsilon);
    tap(i, in.sum);
    const Heads own = heads(layer, in.normed, rotations);
    if (needs.keys_values) entries.push_back(at::stack({own.k, own.v}, 3));
    const at::Tensor mixed = layer.output(attention(own).reshape({rows, -1}));
    const NormedResidual middle = residual_norm(in.sum, mixed, layer.mlp_norm, config_.norm.epsilon);
    x = middle.sum;
    delta = layer.down(swiglu(layer.gate_up(middle.normed)));
  }
  const NormedResidual out = residual_norm(x, delta.to(at::kFloat), final_norm_, config_.norm.epsilon);
  tap(config_.layer_count, out.sum);
  const at::Tensor hidden = by_window(out.normed);
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

}  // namespace outrider::training
