// SPDX-License-Identifier: Apache-2.0
// Decoder layers of learned drafters, differentiable. Weights are f32 leaves, one tensor per published name;
// products run in the type of their inputs. The residual stream is f32.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "formats/model_config.h"
#include "training/lm/llama.h"

namespace outrider::training {

class FrozenTarget;

struct LayerShape {
  int64_t hidden = 0;
  int64_t input = 0;  // width that queries, keys and values are made of
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn = 0;
  double epsilon = 1e-5;
};
// That of the target's layers.
LayerShape layer_shape(const ModelConfig& target);

struct LayerWeights {
  at::Tensor input_norm;  // undefined: the layer has none
  at::Tensor q, k, v, o;
  at::Tensor mlp_norm;
  at::Tensor gate, up, down;
};

// N(0, 0.02), what writes to the residual stream zero: the layer begins as the identity.
LayerWeights initial_layer(const LayerShape& shape, bool has_input_norm, at::Generator& generator);
// The target's own, of its shape.
LayerWeights copied_layer(const FrozenTarget& target, int64_t index);
// Its MLP with `size` inner units: the heaviest of those there are; further ones are drawn and add nothing.
void resize_mlp(LayerWeights& layer, int64_t size, at::Generator& generator);
// By the names of Hugging Face's decoder layers behind `prefix`: "self_attn.q_proj.weight" and so on.
void append_layer(const LayerWeights& layer, const std::string& prefix, NamedTensors& out);

at::Tensor normal_weight(at::IntArrayRef shape, double deviation, at::Generator& generator);
at::Generator seeded_generator(uint64_t seed);

// x [rows, k] W' in the type of x.
at::Tensor product(const at::Tensor& x, const at::Tensor& weight);
// RMSNorm of f32 x [rows, width], as `type`.
at::Tensor normalized(const at::Tensor& x, const at::Tensor& weight, double epsilon, at::ScalarType type);
// Columns t + by of x [windows, length, ...] in the place of t; zeros where there are none.
at::Tensor shifted(const at::Tensor& x, int64_t by);

// Angles of the target's positions, f32 [positions, 1, head_dim / 2].
struct Rotations {
  at::Tensor cos, sin;
};
Rotations make_rotations(const ModelConfig& config, int64_t positions, at::Device device);

// Keys and values of a layer that is unrolled on its own outputs, by step, [windows, length, kv_heads,
// head_dim].
struct UnrolledMemory {
  std::vector<at::Tensor> keys, values;
};

// Row t sees step 0 of the rows up to t, and what it computed itself in later steps. q [windows, length,
// heads, head_dim], of the last step; so is the result.
at::Tensor unrolled_attention(const at::Tensor& q, const UnrolledMemory& memory);

// What a layer leaves: x + delta is the residual stream, added by the norm that follows.
struct LayerOutput {
  at::Tensor x;      // f32 [rows, hidden]
  at::Tensor delta;  // [rows, hidden]
};

// What follows attention in a layer: `mixed` [rows, heads * head_dim], in any shape, is what it found.
LayerOutput finished_layer(const LayerShape& shape, const LayerWeights& weights, const at::Tensor& states,
                           const at::Tensor& mixed);

// Attention of any queries [batch, n, heads, head_dim] to any keys and values [batch, entries, kv_heads,
// head_dim]; unseen: bool [batch or 1, n, entries], 1 where a query does not see an entry; undefined: all are
// seen.
at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& unseen);

// One step of an unrolled layer over all rows of [windows, length]: row t stands at position t + step.
struct UnrolledLayer {
  const LayerShape& shape;
  const LayerWeights& weights;
  const Rotations& rotations;
  int64_t windows = 0, length = 0;

  // `states`: f32 [rows, hidden]; `input`: [rows, shape.input], already normalised.
  LayerOutput run(const at::Tensor& states, const at::Tensor& input, UnrolledMemory& memory) const;
};

}  // namespace outrider::training
