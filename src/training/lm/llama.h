// SPDX-License-Identifier: Apache-2.0
// A Llama network for training and batched generation: RMSNorm, rotary positions (halves rotated, as Hugging
// Face stores them), grouped-query attention, SwiGLU, tied embeddings. Matrix products run in bf16 or f32
// over f32 master weights.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "outrider/result.h"
#include "training/core/model_config.h"

namespace outrider::training {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Weights of one layer. q, k and v are one matrix, as are gate and up: fewer, larger products.
struct LlamaLayer {
  at::Tensor attention_norm;  // [hidden]
  at::Tensor qkv;             // [(heads + 2 kv_heads) * head_dim, hidden]
  at::Tensor output;          // [hidden, heads * head_dim]
  at::Tensor ffn_norm;        // [hidden]
  at::Tensor gate_up;         // [2 * ffn, hidden]
  at::Tensor down;            // [hidden, ffn]
};

struct LlamaWeights {
  at::Tensor embedding;  // [vocab, hidden], also the output head
  std::vector<LlamaLayer> layers;
  at::Tensor final_norm;  // [hidden]
};

// Keys and values of a batch of equally long sequences: per layer [batch, kv_heads, capacity, head_dim].
struct KvCache {
  std::vector<at::Tensor> keys;
  std::vector<at::Tensor> values;
  int64_t length = 0;
};

class Llama {
 public:
  // Weights drawn from N(0, 0.02), those that write to the residual stream scaled down by depth.
  static Llama initialized(const LlamaConfig& config, uint64_t seed, at::Device device);
  // From tensors with Hugging Face names; every one must be there with the shape that `config` asks for.
  static Result<Llama> from_tensors(const LlamaConfig& config, const NamedTensors& tensors,
                                    at::Device device);

  const LlamaConfig& config() const { return config_; }

  // f32 leaves in a fixed order, with the names checkpoints use.
  NamedTensors parameters() const;
  // With Hugging Face names; views of the parameters, nothing is copied.
  NamedTensors huggingface_tensors() const;

  // Copies of the matrices in the type of products (norms stay f32), differentiable back to the parameters.
  LlamaWeights compute_weights(at::ScalarType type) const;

  // tokens: int64 [batch, length]. Returns the final hidden states in the weights' type, [batch * length,
  // hidden].
  at::Tensor forward(const LlamaWeights& weights, const at::Tensor& tokens) const;

  // `type`: that of the weights that will fill it.
  KvCache make_cache(int64_t batch, int64_t capacity, at::ScalarType type) const;
  // tokens: int64 [batch, n], placed after what `cache` holds; n > 1 only into an empty cache. Appends to the
  // cache and returns the hidden states of the last position, [batch, hidden]. Not differentiable.
  at::Tensor extend(const LlamaWeights& weights, const at::Tensor& tokens, KvCache& cache) const;

 private:
  Llama(const LlamaConfig& config, LlamaWeights master, at::Device device);

  LlamaConfig config_;
  LlamaWeights master_;
  at::Tensor cos_, sin_;  // f32 [max_context, 1, head_dim / 2]
};

}  // namespace outrider::training
