// SPDX-License-Identifier: Apache-2.0
// The tokens over which a drafter and its target are compared: with a large vocabulary, comparing all of them
// is most of the work of training.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "training/head_data/head_batches.h"

namespace CLI {
class App;
}

namespace outrider::training {

// Tokens that a step compares. Tokens that a sample stands for count that many times, so that both softmaxes
// keep their sums in expectation.
struct LossTokens {
  at::Tensor ids;  // int64 [n], distinct; undefined: the whole vocabulary
  at::Tensor
      bias;  // [n] in the type of products: logarithms of how many tokens each stands for; or undefined
  at::Tensor rows =
      {};  // int64 [n]: their rows in an output head over the draft tokens; undefined: all of it

  // The rows of `head`, [vocab, size], for these tokens.
  at::Tensor rows_of(const at::Tensor& head) const;
  // The rows of `head`, [draft tokens, size], for these tokens.
  at::Tensor rows_of_draft_head(const at::Tensor& head) const;
};

// The ids of the tokens that count most often, in rising order; counts: one for each token.
at::Tensor frequent_tokens(const std::vector<int64_t>& counts, int64_t wanted);

// Among the tokens that can be drafted: the most frequent ones and, for a fifth of the compared tokens, a
// sample of the others.
class LossVocabulary {
 public:
  // Compares `compared` of the draft tokens, int64 in rising order (undefined: the whole vocabulary); 0: all.
  LossVocabulary(const std::vector<int64_t>& counts, at::Tensor draft_tokens, int64_t compared);

  // The draft tokens; undefined: the whole vocabulary.
  const at::Tensor& draft_tokens() const { return draft_tokens_; }
  // f32 [windows, length]: 1 for rows where the next token counts and the likeliest choice can be drafted.
  at::Tensor lessons(const HeadBatch& batch) const;
  // The tokens that a batch compares: a sample in training, all draft tokens in a measurement. Choices of the
  // target that the batch knows come before others. bias is in the type of `like`, all is on its device.
  LossTokens compared(const HeadBatch& batch, const at::Tensor& like) const;
  LossTokens all(const at::Tensor& like) const;

 private:
  // int64: the rare rows among the target's choices in lessons of the batch.
  at::Tensor chosen_rows(const HeadBatch& batch) const;

  at::Tensor draft_tokens_;
  at::Tensor frequent_;  // int64 rows of draft tokens that every loss compares; undefined: all are compared
  at::Tensor is_rare_;   // bool, by row: sampled
  int64_t sampled_ = 0;
};

// Adds --loss-vocab.
void add_loss_vocab_option(CLI::App& command, int64_t& compared);

}  // namespace outrider::training
