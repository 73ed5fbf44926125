// SPDX-License-Identifier: Apache-2.0
// The tokens over which a drafter and its target are compared: with a large vocabulary, comparing all of them
// is most of the work of training.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace CLI {
class App;
}

namespace outrider::training {

// Tokens that a step compares. Those that a sample stands for count that many times, so that both softmaxes
// keep their sums in expectation.
struct LossTokens {
  at::Tensor ids;  // int64 [n], distinct; undefined: the whole vocabulary
  at::Tensor
      bias;  // [n] in the type of products: logarithms of how many tokens each stands for; or undefined

  // The rows of `head`, [vocab, size], for these tokens.
  at::Tensor rows_of(const at::Tensor& head) const;
};

// The ids of the tokens that count most often, in rising order; counts: one for each token.
at::Tensor frequent_tokens(const std::vector<int64_t>& counts, int64_t wanted);

// The most frequent tokens and, for a fifth of those compared, a sample of the others.
class LossVocabulary {
 public:
  // Compares `compared` tokens; 0: all.
  LossVocabulary(const std::vector<int64_t>& counts, int64_t compared);

  // bias is in the type of `like`, both tensors are on its device.
  LossTokens sample(uint64_t seed, const at::Tensor& like) const;

 private:
  // int64: the tokens that every loss compares, and those that are sampled; undefined: all are compared.
  at::Tensor frequent_, rare_;
  int64_t sampled_ = 0;
};

// Adds --loss-vocab.
void add_loss_vocab_option(CLI::App& command, int64_t& compared);

}  // namespace outrider::training
