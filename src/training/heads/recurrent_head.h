// SPDX-License-Identifier: Apache-2.0
// Drafters with one layer that is run again on its own outputs: EAGLE, EAGLE-3, P-EAGLE, multi-token
// prediction.
//
// Row t reads the target's state of token t and the embedding of token t+1, and predicts token t+2; in step i
// it reads its own last output and the embedding of token t+1+i. Training unrolls the steps as serving does
// (EAGLE-3's training-time test): row t sees step 0 of the rows up to t and its own later steps. P-EAGLE's
// steps after the first read masks, and see one another in the same way.
#pragma once

#include <torch/types.h>

#include <memory>

#include "training/core/decoder_layers.h"
#include "training/heads/draft_head.h"
#include "training/heads/row_loss.h"
#include "training/heads/vocabulary/loss_vocabulary.h"

namespace outrider::training {

struct UnrollOptions {
  int64_t steps = 4;
  double growth = 0.5;        // share of the training in which the unrolled steps grow from 1 to `steps`
  int64_t draft_vocab = 0;    // tokens that it can draft; 0: see draft_tokens()
  int64_t loss_vocab = 8192;  // tokens that one step of training compares, see LossTokens; 0: all
  int64_t mlp = 0;            // inner units of the layer's MLP; 0: as many as in the target
  double decay = 0.8;         // weight of step i is decay^i
  double distribution_weight = 1.0;              // weight of the KL divergence from the target's distribution
  Objective objective = Objective::kDivergence;  // in place of that divergence
  // Weight of the smooth L1 distance between states and the target's hidden states.
  double feature_weight = 0.0;
};

// The target's parts that all recurrent heads use, on the training device.
struct SharedParts {
  at::Tensor embedding;    // [vocab, hidden] in the type of products
  at::Tensor output_head;  // [vocab, hidden] in the type of products
  Rotations rotations;
  LayerShape shape;
  double logit_cap = 0.0;  // the target's logits become cap * tanh(logit / cap); 0: they stay
};

// Adds --unroll, --growth and --mlp.
void add_unroll_options(CLI::App& command, UnrollOptions& unroll);
void add_decay_option(CLI::App& command, UnrollOptions& unroll);
// Adds --loss.
void add_objective_option(CLI::App& command, UnrollOptions& unroll);

class RecurrentHead : public DraftHead {
 public:
  HeadLoss loss(const HeadBatch& batch) const override;

 protected:
  // draft_tokens: int64 ids in rising order; undefined: it can draft all.
  RecurrentHead(const HeadContext& context, const UnrollOptions& unroll, const at::Tensor& draft_tokens);

  struct Outputs {
    at::Tensor state;   // f32 [rows, hidden]: input of the next step
    at::Tensor normed;  // [rows, hidden]: input of the output head
  };
  // f32 [rows, hidden]
  virtual at::Tensor first_state(const HeadBatch& batch) const = 0;
  // embeddings: [rows, hidden] in the type of products.
  virtual Outputs step(const at::Tensor& state, const at::Tensor& embeddings, const UnrolledLayer& place,
                       UnrolledMemory& memory) const = 0;
  // The inputs of steps after the first, in place of the step before and the text, for a head that predicts
  // all of them in one pass.
  struct MaskedPlace {
    at::Tensor state;  // f32 [1, hidden]; undefined: the steps read one another
    int64_t token = 0;
  };
  virtual MaskedPlace masked_place() const { return {}; }
  virtual const LayerWeights& layer() const = 0;
  // The drafter's output head, [n, hidden], for tokens.ids; the target's, unless a head has another one.
  virtual at::Tensor draft_head(const LossTokens& tokens) const {
    return tokens.rows_of(shared_.output_head);
  }

  at::ScalarType type() const { return options_.products; }
  const LayerShape& shape() const { return shared_.shape; }
  LayerShape& mutable_shape() { return shared_.shape; }
  const SharedParts& shared() const { return shared_; }
  const at::Tensor& draft_tokens() const { return vocabulary_.draft_tokens(); }
  nlohmann::json unroll_fingerprint() const;

 private:
  int64_t trained_steps(const HeadBatch& batch) const;
  TargetLogits target(const HeadBatch& batch, const LossTokens& tokens, const at::Tensor& wanted) const;

  HeadOptions options_;
  at::Device device_;
  UnrollOptions unroll_;
  SharedParts shared_;
  LossVocabulary vocabulary_;
};

}  // namespace outrider::training
