// SPDX-License-Identifier: Apache-2.0
// The target of a learned drafter in libtorch, for a GPU. Its states differ from the states of the serving
// kernels only by the rounding of products; keys and values are rounded to the type of the KV cache.
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

  // Keys and values of texts that are being written.
  class Memory {
   public:
    int64_t capacity() const { return rotations.cos.size(0); }
    // Keeps the texts in these rows, int64 [rows], and forgets the others.
    void keep(const at::Tensor& rows);

    std::vector<at::Tensor> keys, values;  // by layer [texts, kv_heads, capacity, head_dim]
    Rotations rotations;                   // of all positions
  };

  at::Device device() const { return device_; }
  at::ScalarType type() const { return type_; }  // of products
  // Memory of one token of one text.
  int64_t bytes_per_entry() const;

  // FrozenTarget::run() on the device.
  std::vector<TargetStates> run(std::span<const std::span<const TokenId>> windows,
                                const FeatureNeeds& needs) const;

  Memory make_memory(int64_t texts, int64_t capacity) const;
  // Runs prompts, which become the texts [first, first + prompts) of the memory. Returns the normed states of
  // their last tokens, f32 [prompts, hidden].
  at::Tensor read_prompts(std::span<const std::span<const TokenId>> prompts, int64_t first,
                          Memory& memory) const;
  // Runs one more token of every text; tokens and positions: int64 [texts]. The first `entries` of the memory
  // are looked at, more than the largest position. Returns the normed states, f32 [texts, hidden].
  at::Tensor append(const at::Tensor& tokens, const at::Tensor& positions, int64_t entries,
                    Memory& memory) const;

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
  at::Tensor attention_to(const Heads& own, size_t layer, const at::Tensor& unseen, Memory& memory) const;

  // The values that a layer's queries mix.
  using Attend = std::function<at::Tensor(size_t layer, const Heads& own)>;
  // Sees the residual stream that enters a layer, or leaves the last one: f32 [rows, hidden].
  using Tap = std::function<void(int64_t layer, const at::Tensor& stream)>;
  // Runs all layers over tokens, int64 [rows]; returns the normed states, f32 [rows, hidden].
  at::Tensor forward(const at::Tensor& tokens, const Rotations& rotations, const Attend& attend,
                     const Tap& tap = {}) const;

  ModelConfig config_;
  at::Device device_;
  at::ScalarType type_;
  at::Tensor embedding_, final_norm_;
  std::vector<Layer> layers_;
};

}  // namespace outrider::training
