// SPDX-License-Identifier: Apache-2.0
// The target of a learned drafter in libtorch, for a GPU. Its states differ from those of the serving kernels
// by the rounding of products alone; keys and values are rounded to the type of the KV cache.
#pragma once

#include <torch/types.h>

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "formats/model_config.h"
#include "outrider/token.h"
#include "training/core/decoder_layers.h"
#include "training/head_data/target_states.h"

namespace outrider::training {

// A weight by its Hugging Face name, as f32 on the CPU; undefined where the model has none.
using WeightReader = std::function<at::Tensor(const std::string& name)>;

class TorchTarget {
 public:
  // Copies the weights to the device, matrices in the type of products.
  TorchTarget(const ModelConfig& config, const WeightReader& weight, at::Device device,
              at::ScalarType products);

  // FrozenTarget::run() on the device.
  std::vector<TargetStates> run(std::span<const std::span<const TokenId>> windows,
                                const FeatureNeeds& needs) const;

 private:
  struct Affine {
    at::Tensor weight, bias;  // [out, in]; [out] or undefined
    at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }
  };
  struct Layer {
    at::Tensor input_norm, mlp_norm;  // f32 [hidden]
    at::Tensor q_norm, k_norm;        // f32 [head_dim]; undefined: the model has none
    Affine qkv, output, gate_up, down;
  };
  // Each [windows, length, heads, head_dim]; queries and keys are rotated.
  struct Heads {
    at::Tensor q, k, v;
  };

  at::Tensor moved(const at::Tensor& weight, at::ScalarType type) const;
  Affine affine(const WeightReader& weight, const std::string& prefix,
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
