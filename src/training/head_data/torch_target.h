// SPDX-License-Identifier: Apache-2.0
// The target of a learned drafter in libtorch, for a GPU. Its states are those of the kernels that serve,
// keys and values rounded as they are cached, but for the rounding of products.
#pragma once

#include <torch/types.h>

#include <span>
#include <string>
#include <vector>

#include "training/head_data/frozen_target.h"
#include "training/heads/head_layers.h"

namespace outrider::training {

class TorchTarget {
 public:
  // A copy of the weights, matrices in the type of products.
  TorchTarget(const FrozenTarget& target, at::Device device, at::ScalarType products);

  // As FrozenTarget::run, on the device.
  std::vector<TargetStates> run(std::span<const std::span<const TokenId>> windows,
                                const FeatureNeeds& needs) const;

 private:
  struct Affine {
    at::Tensor weight, bias;  // [out, in]; [out] or undefined
    at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }
  };
  struct Layer {
    at::Tensor input_norm, mlp_norm;  // f32
    at::Tensor q_norm, k_norm;        // of heads, f32; undefined: there are none
    Affine qkv, output, gate_up, down;
  };
  // [windows, length, heads, head_dim] each, queries and keys rotated.
  struct Heads {
    at::Tensor q, k, v;
  };

  at::Tensor moved(const at::Tensor& weight, at::ScalarType type) const;
  Affine affine(const FrozenTarget& target, const std::string& prefix,
                std::initializer_list<const char*> names) const;
  at::Tensor normed_heads(const at::Tensor& heads, const at::Tensor& norm) const;
  Heads heads(const Layer& layer, const at::Tensor& normed, const Rotations& rotations) const;
  at::Tensor attention(const Heads& heads) const;

  ModelConfig config_;
  at::Device device_;
  at::ScalarType type_;
  at::Tensor embedding_, final_norm_;
  std::vector<Layer> layers_;
};

}  // namespace outrider::training
