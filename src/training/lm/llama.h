// SPDX-License-Identifier: Apache-2.0
// A Llama network for training and batched generation: RMSNorm, rotary positions (rotated by halves, as in
// Hugging Face models), grouped-query attention, SwiGLU, tied embeddings. Matrix products run in bf16 or f32
// on copies of f32 master weights.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "outrider/result.h"
#include "training/core/named_tensors.h"
#include "training/lm/llama_config.h"

namespace outrider::training {

// Weights of one layer. q, k and v share one matrix, as do gate and up, for fewer and larger products.
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

// Keys and values of a batch of equally long sequences; per layer [batch, kv_heads, capacity, head_dim].
struct KvCache {
  std::vector<at::Tensor> keys;
  std::vector<at::Tensor> values;
  int64_t length = 0;  // tokens of each sequence
};

class Llama {
 public:
  // Draws weights from N(0, 0.02); where they write to the residual stream, the deviation is divided by
  // sqrt(2 * layers).
  static Llama initialized(const LlamaConfig& config, uint64_t seed, at::Device device);
  // Takes tensors with Hugging Face names. Error: one is missing or its shape does not fit `config`.
  static Result<Llama> from_tensors(const LlamaConfig& config, const NamedTensors& tensors,
                                    at::Device device);

  const LlamaConfig& config() const { return config_; }

  // The f32 leaf tensors in a fixed order, by their names in checkpoints.
  NamedTensors parameters() const;
  // Views of the parameters by Hugging Face names.
  NamedTensors huggingface_tensors() const;

  // Copies the matrices in the type of products (norms stay f32); gradients flow back to the parameters.
  LlamaWeights compute_weights(at::ScalarType type) const;

  // tokens: int64 [batch, length]. Returns the final hidden states in the weights' type, [batch * length,
  // hidden].
  at::Tensor forward(const LlamaWeights& weights, const at::Tensor& tokens) const;

  // `type` is the type of the weights that will fill the cache.
  KvCache make_cache(int64_t batch, int64_t capacity, at::ScalarType type) const;
  // Appends tokens, int64 [batch, n], to the cache and returns the hidden states of the last position,
  // [batch, hidden]. n may exceed 1 only if the cache is empty. Not differentiable.
  at::Tensor extend(const LlamaWeights& weights, const at::Tensor& tokens, KvCache& cache) const;

 private:
  Llama(const LlamaConfig& config, LlamaWeights master, at::Device device);

  LlamaConfig config_;
  LlamaWeights master_;
  at::Tensor cos_, sin_;  // f32 [max_context, 1, head_dim / 2]
};

}  // namespace outrider::training
