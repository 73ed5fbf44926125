// SPDX-License-Identifier: Apache-2.0
// Drafters with one layer that is run again on its own outputs: EAGLE, EAGLE-3, multi-token prediction.
//
// Row t begins with what the target computed at slot t and the embedding of token t+1, and foresees token
// t+2; in step i it reads its own last output and the embedding of token t+1+i. Training unrolls the steps as
// serving does (EAGLE-3's training-time test): row t sees the first steps of the rows up to t and its own
// later ones.
#pragma once

#include <torch/types.h>

#include <memory>

#include "training/heads/draft_head.h"
#include "training/heads/head_layers.h"

namespace outrider::training {

struct UnrollOptions {
  int64_t steps = 4;
  int64_t mlp = 0;                   // size of the layer's MLP; 0: as the target's
  double decay = 0.8;                // weight of step i: decay^i
  double distribution_weight = 1.0;  // of KL from the target's distribution
  double feature_weight = 0.0;  // of the smooth L1 distance between states and the target's hidden states
};

// What all recurrent heads have of the target, on the training device.
struct SharedParts {
  at::Tensor embedding;    // [vocab, hidden] in the type of products
  at::Tensor output_head;  // [vocab, hidden]
  Rotations rotations;
  LayerShape shape;
};

// --unroll and --mlp
void add_unroll_options(CLI::App& command, UnrollOptions& unroll);

class RecurrentHead : public DraftHead {
 public:
  HeadLoss loss(const HeadBatch& batch) const override;

 protected:
  RecurrentHead(const HeadContext& context, const UnrollOptions& unroll);

  struct Outputs {
    at::Tensor state;   // f32 [rows, hidden]: what the next step reads
    at::Tensor normed;  // [rows, hidden]: what the output head reads
  };
  // f32 [rows, hidden]
  virtual at::Tensor first_state(const HeadBatch& batch) const = 0;
  // embeddings: [rows, hidden] in the type of products.
  virtual Outputs step(const at::Tensor& state, const at::Tensor& embeddings, const UnrolledLayer& place,
                       UnrolledMemory& memory) const = 0;
  virtual const LayerWeights& layer() const = 0;
  virtual at::Tensor draft_head() const = 0;              // [draft vocabulary, hidden]
  virtual at::Tensor draft_tokens() const { return {}; }  // int64 [draft vocabulary]; undefined: all tokens

  at::ScalarType type() const { return options_.products; }
  const LayerShape& shape() const { return shared_.shape; }
  LayerShape& mutable_shape() { return shared_.shape; }
  const SharedParts& shared() const { return shared_; }
  const UnrollOptions& unroll() const { return unroll_; }
  nlohmann::json unroll_facts() const;
  // Leaves on the training device.
  void own(NamedTensors& tensors) const;

 private:
  HeadOptions options_;
  at::Device device_;
  UnrollOptions unroll_;
  SharedParts shared_;
};

// The config's fields that the layers of all heads have, in Hugging Face's words.
nlohmann::json layer_config(const ModelConfig& target, const LayerShape& shape);

}  // namespace outrider::training
