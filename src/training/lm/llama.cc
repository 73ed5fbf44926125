// SPDX-License-Identifier: Apache-2.0
#include "training/lm/llama.h"

#include <ATen/ATen.h>

#include <cmath>
#include <unordered_map>

#include "training/core/autograd_ops.h"

namespace outrider::training {
namespace {

// Attention of one position. q: [batch, kv_heads, group, head_dim]; k and v: [batch, kv_heads, m, head_dim];
// every query sees all m keys.
at::Tensor decode_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
  return at::matmul(at::softmax(scores, -1), v);
}

// The place of a Hugging Face tensor: rows [row, row + rows) of `fused`.
struct Slice {
  std::string name;
  at::Tensor fused;
  int64_t row = 0;
  int64_t rows = 0;
};

std::vector<Slice> huggingface_slices(const LlamaConfig& config, const LlamaWeights& weights) {
  std::vector<Slice> slices;
  const auto whole = [&](std::string name, const at::Tensor& tensor) {
    slices.push_back({std::move(name), tensor, 0, tensor.size(0)});
  };
  const int64_t dim = config.head_dim();
  const int64_t q_rows = config.heads * dim, kv_rows = config.kv_heads * dim, ffn = config.ffn_size;
  whole("model.embed_tokens.weight", weights.embedding);
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const LlamaLayer& layer = weights.layers[i];
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    whole(prefix + "input_layernorm.weight", layer.attention_norm);
    slices.push_back({prefix + "self_attn.q_proj.weight", layer.qkv, 0, q_rows});
    slices.push_back({prefix + "self_attn.k_proj.weight", layer.qkv, q_rows, kv_rows});
    slices.push_back({prefix + "self_attn.v_proj.weight", layer.qkv, q_rows + kv_rows, kv_rows});
    whole(prefix + "self_attn.o_proj.weight", layer.output);
    whole(prefix + "post_attention_layernorm.weight", layer.ffn_norm);
    slices.push_back({prefix + "mlp.gate_proj.weight", layer.gate_up, 0, ffn});
    slices.push_back({prefix + "mlp.up_proj.weight", layer.gate_up, ffn, ffn});
    whole(prefix + "mlp.down_proj.weight", layer.down);
  }
  whole("model.norm.weight", weights.final_norm);
  return slices;
}

LlamaWeights empty_weights(const LlamaConfig& config, at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  const int64_t hidden = config.hidden_size, ffn = config.ffn_size;
  LlamaWeights weights;
  weights.embedding = at::empty({config.vocab_size, hidden}, options);
  for (int i = 0; i < config.layers; ++i) {
    weights.layers.push_back({.attention_norm = at::ones({hidden}, options),
                              .qkv = at::empty({config.qkv_rows(), hidden}, options),
                              .output = at::empty({hidden, hidden}, options),
                              .ffn_norm = at::ones({hidden}, options),
                              .gate_up = at::empty({2 * ffn, hidden}, options),
                              .down = at::empty({hidden, ffn}, options)});
  }
  weights.final_norm = at::ones({hidden}, options);
  return weights;
}

}  // namespace

Llama::Llama(const LlamaConfig& config, LlamaWeights master, at::Device device)
    : config_(config), master_(std::move(master)) {
  const int64_t half = config.head_dim() / 2;
  const at::Tensor exponents = at::arange(half, at::kDouble) / static_cast<double>(half);
  const at::Tensor frequencies = at::pow(config.rope_theta, -exponents);
  const at::Tensor angles = at::outer(at::arange(config.max_context, at::kDouble), frequencies).unsqueeze(1);
  cos_ = angles.cos().to(at::kFloat).to(device);
  sin_ = angles.sin().to(at::kFloat).to(device);
  for (auto& [name, tensor] : parameters()) tensor.requires_grad_(true);
}

Llama Llama::initialized(const LlamaConfig& config, uint64_t seed, at::Device device) {
  constexpr double kStd = 0.02;
  const double residual_std = kStd / std::sqrt(2.0 * config.layers);
  at::manual_seed(seed);
  LlamaWeights weights = empty_weights(config, at::kCPU);
  weights.embedding.normal_(0.0, kStd);
  for (LlamaLayer& layer : weights.layers) {
    layer.qkv.normal_(0.0, kStd);
    layer.output.normal_(0.0, residual_std);
    layer.gate_up.normal_(0.0, kStd);
    layer.down.normal_(0.0, residual_std);
  }
  const auto move = [&](at::Tensor& tensor) { tensor = tensor.to(device); };
  move(weights.embedding);
  for (LlamaLayer& layer : weights.layers) {
    for (at::Tensor* tensor :
         {&layer.attention_norm, &layer.qkv, &layer.output, &layer.ffn_norm, &layer.gate_up, &layer.down}) {
      move(*tensor);
    }
  }
  move(weights.final_norm);
  return Llama(config, std::move(weights), device);
}

Result<Llama> Llama::from_tensors(const LlamaConfig& config, const NamedTensors& tensors, at::Device device) {
  std::unordered_map<std::string, at::Tensor> by_name(tensors.begin(), tensors.end());
  LlamaWeights weights = empty_weights(config, device);
  for (const Slice& slice : huggingface_slices(config, weights)) {
    const auto found = by_name.find(slice.name);
    if (found == by_name.end()) return input_error("the model has no tensor " + slice.name);
    at::Tensor target = slice.fused.narrow(0, slice.row, slice.rows);
    if (found->second.sizes() != target.sizes()) {
      return input_error("tensor " + slice.name + " has another shape than config.json asks for");
    }
    target.copy_(found->second);
  }
  return Llama(config, std::move(weights), device);
}

NamedTensors Llama::parameters() const {
  NamedTensors named = {{"embedding", master_.embedding}};
  for (size_t i = 0; i < master_.layers.size(); ++i) {
    const LlamaLayer& layer = master_.layers[i];
    const std::string prefix = "layers." + std::to_string(i) + ".";
    named.insert(named.end(), {{prefix + "attention_norm", layer.attention_norm},
                               {prefix + "qkv", layer.qkv},
                               {prefix + "output", layer.output},
                               {prefix + "ffn_norm", layer.ffn_norm},
                               {prefix + "gate_up", layer.gate_up},
                               {prefix + "down", layer.down}});
  }
  named.emplace_back("final_norm", master_.final_norm);
  return named;
}

NamedTensors Llama::huggingface_tensors() const {
  NamedTensors named;
  for (const Slice& slice : huggingface_slices(config_, master_)) {
    named.emplace_back(slice.name, slice.fused.detach().narrow(0, slice.row, slice.rows));
  }
  return named;
}

LlamaWeights Llama::compute_weights(at::ScalarType type) const {
  LlamaWeights weights = master_;
  const auto cast = [type](at::Tensor& tensor) { tensor = tensor.to(type); };
  cast(weights.embedding);
  for (LlamaLayer& layer : weights.layers) {
    for (at::Tensor* tensor : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down}) cast(*tensor);
  }
  return weights;
}

at::Tensor Llama::forward(const LlamaWeights& weights, const at::Tensor& tokens) const {
  const int64_t batch = tokens.size(0), n = tokens.size(1), dim = config_.head_dim();
  const int64_t heads = config_.heads, kv_heads = config_.kv_heads;
  const at::Tensor cos = cos_.narrow(0, 0, n), sin = sin_.narrow(0, 0, n);

  at::Tensor x = at::embedding(master_.embedding, tokens).view({batch * n, config_.hidden_size});
  at::Tensor delta = at::zeros(x.sizes(), weights.embedding.options());
  for (const LlamaLayer& layer : weights.layers) {
    const NormedResidual before_attention = residual_norm(x, delta, layer.attention_norm, config_.rms_eps);
    const at::Tensor qkv =
        at::linear(before_attention.normed, layer.qkv).view({batch, n, heads + 2 * kv_heads, dim});
    const at::Tensor qk = rotate(qkv.narrow(2, 0, heads + kv_heads), cos, sin);
    const at::Tensor mixed = causal_attention(qk.narrow(2, 0, heads), qk.narrow(2, heads, kv_heads),
                                              qkv.narrow(2, heads + kv_heads, kv_heads));
    delta = at::linear(mixed.view({batch * n, heads * dim}), layer.output);
    const NormedResidual before_ffn =
        residual_norm(before_attention.sum, delta, layer.ffn_norm, config_.rms_eps);
    delta = at::linear(swiglu(at::linear(before_ffn.normed, layer.gate_up)), layer.down);
    x = before_ffn.sum;
  }
  return residual_norm(x, delta, weights.final_norm, config_.rms_eps).normed;
}

KvCache Llama::make_cache(int64_t batch, int64_t capacity, at::ScalarType type) const {
  KvCache cache;
  const auto options = at::TensorOptions().dtype(type).device(cos_.device());
  for (int i = 0; i < config_.layers; ++i) {
    cache.keys.push_back(at::empty({batch, config_.kv_heads, capacity, config_.head_dim()}, options));
    cache.values.push_back(at::empty({batch, config_.kv_heads, capacity, config_.head_dim()}, options));
  }
  return cache;
}

at::Tensor Llama::extend(const LlamaWeights& weights, const at::Tensor& tokens, KvCache& cache) const {
  const at::NoGradGuard no_grad;
  const int64_t batch = tokens.size(0), n = tokens.size(1), dim = config_.head_dim();
  const int64_t heads = config_.heads, kv_heads = config_.kv_heads;
  const at::Tensor cos = cos_.narrow(0, cache.length, n), sin = sin_.narrow(0, cache.length, n);

  at::Tensor x = at::embedding(master_.embedding, tokens).view({batch * n, config_.hidden_size});
  at::Tensor delta = at::zeros(x.sizes(), weights.embedding.options());
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const LlamaLayer& layer = weights.layers[i];
    const NormedResidual before_attention = residual_norm(x, delta, layer.attention_norm, config_.rms_eps);
    const at::Tensor qkv =
        at::linear(before_attention.normed, layer.qkv).view({batch, n, heads + 2 * kv_heads, dim});
    const at::Tensor qk = rotate(qkv.narrow(2, 0, heads + kv_heads), cos, sin);
    const at::Tensor k = qk.narrow(2, heads, kv_heads), v = qkv.narrow(2, heads + kv_heads, kv_heads);
    cache.keys[i].narrow(2, cache.length, n).copy_(k.transpose(1, 2));
    cache.values[i].narrow(2, cache.length, n).copy_(v.transpose(1, 2));

    at::Tensor mixed;
    if (n > 1) {
      mixed = causal_attention(qk.narrow(2, 0, heads), k, v);
    } else {
      mixed = decode_attention(qk.narrow(2, 0, heads).reshape({batch, kv_heads, heads / kv_heads, dim}),
                               cache.keys[i].narrow(2, 0, cache.length + 1),
                               cache.values[i].narrow(2, 0, cache.length + 1));
    }
    delta = at::linear(mixed.reshape({batch * n, heads * dim}), layer.output);
    const NormedResidual before_ffn =
        residual_norm(before_attention.sum, delta, layer.ffn_norm, config_.rms_eps);
    delta = at::linear(swiglu(at::linear(before_ffn.normed, layer.gate_up)), layer.down);
    x = before_ffn.sum;
  }
  cache.length += n;
  const auto last = [&](const at::Tensor& rows) {
    return rows.view({batch, n, config_.hidden_size}).select(1, n - 1);
  };
  return residual_norm(last(x), last(delta), weights.final_norm, config_.rms_eps).normed;
}

}  // namespace outrider::training
