// SPDX-License-Identifier: Apache-2.0
// Differentiable decoder layers of learned drafters. Weights are f32 leaf tensors, one per published name;
// products run in the type of their inputs. The residual stream is f32.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "formats/model_config.h"
#include "training/core/named_tensors.h"

namespace outrider::training {

struct LayerShape {
  int64_t hidden = 0;
  int64_t input = 0;  // width of the rows that are projected to queries, keys and values
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn = 0;
  double epsilon = 1e-5;
  RopeTraits rope = {};
};
// The shape of the target's layers. Where they are no plain layers of attention and a dense MLP, it is a
// shape of about their size.
LayerShape layer_shape(const ModelConfig& target);

struct LayerWeights {
  at::Tensor input_norm;  // f32 [input]; undefined: the layer has none
  at::Tensor q, k, v, o;
  at::Tensor mlp_norm;
  at::Tensor gate, up, down;
};

// Draws weights from N(0, 0.02); weights that write to the residual stream are zero, so that the layer begins
// as the identity.
LayerWeights initial_layer(const LayerShape& shape, bool has_input_norm, at::Generator& generator);
// Gives the layer's MLP `size` inner units: keeps the units with the largest weights and, if they are too
// few, adds drawn ones with output weights of zero.
void resize_mlp(LayerWeights& layer, int64_t size, at::Generator& generator);
// Moves the parameters to the device and has gradients computed for them.
void make_trainable(const NamedTensors& parameters, at::Device device);
// Appends the layer's weights by the names of Hugging Face's decoder layers: `prefix` +
// "self_attn.q_proj.weight" and so on.
void append_layer(const LayerWeights& layer, const std::string& prefix, NamedTensors& out);

at::Tensor normal_weight(at::IntArrayRef shape, double deviation, at::Generator& generator);
at::Generator seeded_generator(uint64_t seed);

// x [rows, k] times the transposed weight [n, k], in the type of x.
at::Tensor product(const at::Tensor& x, const at::Tensor& weight);
// RMSNorm of f32 x [rows, width], rounded to `type`.
at::Tensor normalized(const at::Tensor& x, const at::Tensor& weight, double epsilon, at::ScalarType type);
// Moves column t + by of x [windows, length, ...] to column t; the last `by` columns are zeros.
at::Tensor shifted(const at::Tensor& x, int64_t by);

// The likeliest token of every row, int64 [rows]; hidden [rows, size], head [vocab, size].
at::Tensor likeliest_tokens(const at::Tensor& hidden, const at::Tensor& head);

// Cosines and sines of the rotary angles by position, f32 [positions, 1, head_dim / 2].
struct Rotations {
  at::Tensor cos, sin;
};
Rotations make_rotations(const RopeTraits& rope, int64_t head_dim, int64_t positions, at::Device device);
Rotations make_rotations(const ModelConfig& config, int64_t positions, at::Device device);

// Keys and values of a layer that is unrolled on its own outputs: one tensor [windows, length, kv_heads,
// head_dim] per step.
struct UnrolledMemory {
  std::vector<at::Tensor> keys, values;
};

// Attention in which row t sees step 0 of the rows up to t and its own entries of later steps. The queries of
// the last step, q, and the result are [windows, length, heads, head_dim].
at::Tensor unrolled_attention(const at::Tensor& q, const UnrolledMemory& memory);

// The outputs of a layer: x + delta is the residual stream; the norm that follows adds them.
struct LayerOutput {
  at::Tensor x;      // f32 [rows, hidden]
  at::Tensor delta;  // [rows, hidden]
};

// The part of a layer after attention. `mixed` is attention's result, rows * heads * head_dim elements in any
// shape; `states` f32 [rows, hidden] is the residual stream.
LayerOutput finished_layer(const LayerShape& shape, const LayerWeights& weights, const at::Tensor& states,
                           const at::Tensor& mixed);

// Attention of queries [batch, n, heads, head_dim] to keys and values [batch, entries, kv_heads, head_dim].
// `unseen`: bool [batch or 1, n, entries], 1 where a query does not see an entry; undefined: every query sees
// all.
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
