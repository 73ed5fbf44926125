// SPDX-License-Identifier: Apache-2.0
#include "training/core/decoder_layers.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "models/rotary_embedding.h"
#include "training/core/autograd_ops.h"
#include "training/core/target_form.h"

namespace outrider::training {
namespace {

constexpr double kDeviation = 0.02;
constexpr int64_t kUsualHeadDim = 128;

}  // namespace

LayerShape layer_shape(const ModelConfig& target) {
  const int64_t layer = last_attention_layer(target), hidden = target.hidden_size;
  const LayerSizes sizes = target.sizes_of(layer);
  LayerShape shape{.hidden = hidden,
                   .input = hidden,
                   .heads = sizes.head_count,
                   .kv_heads = sizes.kv_head_count,
                   .head_dim = sizes.head_dim,
                   .ffn = sizes.ffn_size,
                   .epsilon = target.norm.epsilon,
                   .rope = drafter_rope(target)};
  if (target.traits_of(layer).kind != &kAttentionKind) {  // latent attention, or none at all
    shape.head_dim = std::min(hidden, kUsualHeadDim);
    shape.heads = shape.kv_heads = hidden / shape.head_dim;
  }
  if (target.has_experts(layer)) shape.ffn = std::max(hidden, target.experts.used * target.experts.ffn_size);
  return shape;
}

at::Generator seeded_generator(uint64_t seed) { return at::detail::createCPUGenerator(seed); }

at::Tensor normal_weight(at::IntArrayRef shape, double deviation, at::Generator& generator) {
  return at::empty(shape, at::kFloat).normal_(0.0, deviation, generator);
}

LayerWeights initial_layer(const LayerShape& shape, bool has_input_norm, at::Generator& generator) {
  const int64_t q = shape.heads * shape.head_dim, kv = shape.kv_heads * shape.head_dim;
  const auto drawn = [&](int64_t rows, int64_t columns) {
    return normal_weight({rows, columns}, kDeviation, generator);
  };
  return {.input_norm = has_input_norm ? at::ones({shape.hidden}) : at::Tensor(),
          .q = drawn(q, shape.input),
          .k = drawn(kv, shape.input),
          .v = drawn(kv, shape.input),
          .o = at::zeros({shape.hidden, q}),
          .mlp_norm = at::ones({shape.hidden}),
          .gate = drawn(shape.ffn, shape.hidden),
          .up = drawn(shape.ffn, shape.hidden),
          .down = at::zeros({shape.hidden, shape.ffn})};
}

void resize_mlp(LayerWeights& layer, int64_t size, at::Generator& generator) {
  const int64_t hidden = layer.gate.size(1), missing = std::max<int64_t>(0, size - layer.gate.size(0));
  const at::Tensor weight = layer.gate.norm(2, 1) * layer.up.norm(2, 1) * layer.down.norm(2, 0);
  const at::Tensor heaviest = weight.argsort(/*dim=*/0, /*descending=*/true).narrow(0, 0, size - missing);
  const at::Tensor kept = std::get<0>(heaviest.sort());
  for (at::Tensor* rows : {&layer.gate, &layer.up})
    *rows = at::cat({rows->index_select(0, kept), normal_weight({missing, hidden}, kDeviation, generator)});
  layer.down = at::cat({layer.down.index_select(1, kept), at::zeros({hidden, missing})}, 1);
}

void make_trainable(const NamedTensors& parameters, at::Device device) {
  for (const auto& [name, tensor] : parameters) {
    tensor.set_data(tensor.to(device).contiguous());
    tensor.requires_grad_(true);
  }
}

void append_layer(const LayerWeights& layer, const std::string& prefix, NamedTensors& out) {
  const auto append = [&](const char* name, const at::Tensor& tensor) {
    if (tensor.defined()) out.emplace_back(prefix + name + ".weight", tensor);
  };
  append("input_layernorm", layer.input_norm);
  append("self_attn.q_proj", layer.q);
  append("self_attn.k_proj", layer.k);
  append("self_attn.v_proj", layer.v);
  append("self_attn.o_proj", layer.o);
  append("post_attention_layernorm", layer.mlp_norm);
  append("mlp.gate_proj", layer.gate);
  append("mlp.up_proj", layer.up);
  append("mlp.down_proj", layer.down);
}

at::Tensor product(const at::Tensor& x, const at::Tensor& weight) {
  return at::linear(x, weight.to(x.scalar_type()));
}

at::Tensor normalized(const at::Tensor& x, const at::Tensor& weight, double epsilon, at::ScalarType type) {
  return residual_norm(x, at::zeros(x.sizes(), x.options().dtype(type)), weight, epsilon).normed;
}

at::Tensor shifted(const at::Tensor& x, int64_t by) {
  if (by == 0) return x;
  const int64_t length = x.size(1), kept = std::max<int64_t>(0, length - by);
  std::vector<int64_t> missing = x.sizes().vec();
  missing[1] = length - kept;
  return at::cat({x.narrow(1, length - kept, kept), at::zeros(missing, x.options())}, 1);
}

at::Tensor likeliest_tokens(const at::Tensor& hidden, const at::Tensor& head) {
  constexpr int64_t kRows = 1024;  // rows of logits that are in memory at a time
  const at::NoGradGuard no_grad;
  at::Tensor tokens = at::empty({hidden.size(0)}, hidden.options().dtype(at::kLong));
  for (int64_t first = 0; first < hidden.size(0); first += kRows) {
    const int64_t count = std::min(kRows, hidden.size(0) - first);
    // On a CPU max() finds the place six times as fast as argmax().
    const at::Tensor logits = at::linear(hidden.narrow(0, first, count), head);
    tokens.narrow(0, first, count).copy_(std::get<1>(logits.max(-1)));
  }
  return tokens;
}

Rotations make_rotations(const RopeTraits& rope, int64_t head_dim, int64_t positions, at::Device device) {
  std::vector<float> frequencies = rope_inverse_frequencies(rope, head_dim);
  const at::Tensor inverse =
      at::from_blob(frequencies.data(), {static_cast<int64_t>(frequencies.size())}, at::kFloat)
          .to(at::kDouble);
  const at::Tensor angles = at::outer(at::arange(positions, at::kDouble), inverse).unsqueeze(1);
  return {angles.cos().to(at::kFloat).to(device), angles.sin().to(at::kFloat).to(device)};
}

Rotations make_rotations(const ModelConfig& config, int64_t positions, at::Device device) {
  return make_rotations(config.ropes.front(), config.head_dim, positions, device);
}

at::Tensor unrolled_attention(const at::Tensor& q, const UnrolledMemory& memory) {
  if (memory.keys.size() == 1) return causal_attention(q, memory.keys[0], memory.values[0]);
  const int64_t windows = q.size(0), n = q.size(1), heads = q.size(2), dim = q.size(3);
  const int64_t kv_heads = memory.keys[0].size(2), group = heads / kv_heads;
  const auto own = [&](const at::Tensor& x) {  // [windows, kv_heads, 1, n, dim]
    return x.transpose(1, 2).unsqueeze(2);
  };
  const auto flat = [&](const at::Tensor& x) {  // [windows * kv_heads, n, dim]
    return x.transpose(1, 2).reshape({windows * kv_heads, n, dim});
  };
  const at::Tensor queries = q.view({windows, n, kv_heads, group, dim}).permute({0, 2, 3, 1, 4});
  const at::Tensor rows = queries.reshape({windows * kv_heads, group * n, dim});
  const at::Tensor unseen = at::ones({n, n}, q.options().dtype(at::kBool)).triu(1);
  std::vector<at::Tensor> scores = {at::bmm(rows, flat(memory.keys[0]).transpose(1, 2))
                                        .view({windows, kv_heads, group, n, n})
                                        .to(at::kFloat)};
  scores[0] = scores[0].masked_fill(unseen, -std::numeric_limits<double>::infinity());
  for (size_t step = 1; step < memory.keys.size(); ++step)
    scores.push_back((queries * own(memory.keys[step])).to(at::kFloat).sum(-1, /*keepdim=*/true));
  const at::Tensor distribution =
      at::softmax(at::cat(scores, -1) / std::sqrt(static_cast<double>(dim)), -1).to(q.scalar_type());
  const at::Tensor original = distribution.narrow(-1, 0, n).reshape({windows * kv_heads, group * n, n});
  at::Tensor mixed = at::bmm(original, flat(memory.values[0])).view({windows, kv_heads, group, n, dim});
  for (size_t step = 1; step < memory.keys.size(); ++step)
    mixed = mixed + distribution.narrow(-1, n + static_cast<int64_t>(step) - 1, 1) * own(memory.values[step]);
  return mixed.permute({0, 3, 1, 2, 4}).reshape({windows, n, heads, dim});
}

LayerOutput finished_layer(const LayerShape& shape, const LayerWeights& weights, const at::Tensor& states,
                           const at::Tensor& mixed) {
  const at::Tensor attended =
      product(mixed.reshape({states.size(0), shape.heads * shape.head_dim}), weights.o);
  const NormedResidual middle = residual_norm(states, attended, weights.mlp_norm, shape.epsilon);
  const at::Tensor gated = swiglu(product(middle.normed, at::cat({weights.gate, weights.up})));
  return {middle.sum, product(gated, weights.down)};
}

at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& unseen) {
  const int64_t batch = q.size(0), n = q.size(1), heads = q.size(2), dim = q.size(3);
  const int64_t entries = k.size(1), kv_heads = k.size(2), group = heads / kv_heads;
  const auto flat = [&](const at::Tensor& x) {  // [batch * kv_heads, entries, dim]
    return x.transpose(1, 2).reshape({batch * kv_heads, entries, dim});
  };
  const at::Tensor queries = q.reshape({batch, n, kv_heads, group, dim})
                                 .permute({0, 2, 3, 1, 4})
                                 .reshape({batch * kv_heads, group * n, dim});
  at::Tensor scores =
      at::bmm(queries, flat(k).transpose(1, 2)).view({batch, kv_heads, group, n, entries}).to(at::kFloat);
  if (unseen.defined()) {
    scores =
        scores.masked_fill(unseen.view({-1, 1, 1, n, entries}), -std::numeric_limits<double>::infinity());
  }
  const at::Tensor distribution =
      at::softmax(scores / std::sqrt(static_cast<double>(dim)), -1).to(q.scalar_type());
  const at::Tensor mixed = at::bmm(distribution.view({batch * kv_heads, group * n, entries}), flat(v));
  return mixed.view({batch, kv_heads, group, n, dim})
      .permute({0, 3, 1, 2, 4})
      .reshape({batch, n, heads, dim});
}

LayerOutput UnrolledLayer::run(const at::Tensor& states, const at::Tensor& input,
                               UnrolledMemory& memory) const {
  const int64_t heads = shape.heads, kv_heads = shape.kv_heads;
  const auto step = static_cast<int64_t>(memory.keys.size());
  const at::Tensor qkv = product(input, at::cat({weights.q, weights.k, weights.v}))
                             .view({windows, length, heads + 2 * kv_heads, shape.head_dim});
  const at::Tensor qk = rotate(qkv.narrow(2, 0, heads + kv_heads), rotations.cos.narrow(0, step, length),
                               rotations.sin.narrow(0, step, length));
  memory.keys.push_back(qk.narrow(2, heads, kv_heads));
  memory.values.push_back(qkv.narrow(2, heads + kv_heads, kv_heads));
  const at::Tensor mixed = unrolled_attention(qk.narrow(2, 0, heads), memory);
  return finished_layer(shape, weights, states, mixed);
}

}  // namespace outrider::training
