// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "outrider/result.h"
#include "outrider/sampling_params.h"
#include "sampling/randomness.h"
#include "sampling/repetition_finder.h"
#include "sampling/token_history.h"

namespace outrider {
// Turns logits into the distribution of the next token: bias, penalties, DRY, temperature, top-n-sigma,
// top-k, typical-p, top-p, min-p, XTC and softmax in f64, in this order, for target and draft alike. At
// temperature 0 all mass is on the lowest id among the largest values. NaN counts as -infinity; logits of
// +infinity share all mass; if no token is left (every logit is -infinity), the distribution is empty. Tokens
// less than 2^-1022 times as likely as the likeliest are dropped. Among equally likely tokens the highest ids
// are cut first. Biases and penalties of ids outside the vocabulary are ignored. Keeps its scratch memory
// between calls.
class LogitsProcessor {
 public:
  // logits: [vocab]. The result is valid until the next call. Precondition: the parameters are in range
  // (config/option_table.h). draw: of the position, for XTC (CounterRandomness::exclusion_draw); at 1 nothing
  // is excluded.
  const Distribution& build(std::span<const float> logits, const SamplingParams& params,
                            const TokenHistory& history, double draw = 1.0);
  // The `count` likeliest tokens of the softmax after bias, penalties and temperature, with their
  // probabilities among all tokens: these do not sum to 1. Ordered and valid like the result of build().
  // Precondition: 1e-6 <= temperature <= 1e6.
  const Distribution& list_likeliest(int count, std::span<const float> logits, const SamplingParams& params,
                                     const TokenHistory& history);

 private:
  struct Candidate {
    TokenId token;
    double value;  // a logit; after exponentiate() a weight: its probability over the likeliest one's
  };

  struct Surprise {
    Candidate candidate;
    double distance;  // of its information from the mean
  };

  // An interval that contains the sum of all weights.
  struct Bounds {
    double low;
    double high;
  };

  void collect(std::span<const float> logits, const SamplingParams& params, const TokenHistory& history);
  void collect_top(std::span<const float> logits, const SamplingParams& params, const TokenHistory& history);
  std::span<const float> set_adjusted_apart(std::span<const float> logits, const SamplingParams& params,
                                            const TokenHistory& history);
  bool keep_likeliest(std::span<const float> logits, const SamplingParams& params,
                      const TokenHistory& history);
  void adjust(const SamplingParams& params, const TokenHistory& history);
  void set_greedy();
  void drop_impossible();
  void keep_top_n_sigma(double n);
  void keep_top_k(size_t k);
  void exponentiate(double temperature);
  double sum_of_weights() const;
  bool keep_top_p(double top_p, Bounds total);
  void keep_typical(double typical_p);
  void keep_min_p(double min_p);
  void exclude_top(double threshold);
  void sort_by_id();
  void divide_by(double total);

  std::vector<Candidate> candidates_;
  std::vector<TokenId> found_;
  RepetitionFinder repetitions_;
  std::span<const std::pair<TokenId, double>> dry_;  // penalties of the present call
  std::vector<Surprise> surprises_;
  std::vector<float> unadjusted_;  // logits of tokens without bias and penalty, NaN for the others
  Distribution distribution_;
};

// Whether the parameters have no bias and no penalty.
bool leaves_logits_alone(const SamplingParams& params);

// Chooses tokens as the coupled rule does: the tokens with the largest log p + g, where p is the distribution
// that LogitsProcessor builds from the logits. Where p is a plain softmax, it is not computed.
class CoupledChooser {
 public:
  struct Place {
    CounterRandomness* randomness = nullptr;
    int64_t position = 0;
  };
  // The chosen token, -1 if the distribution is empty. Preconditions: as of LogitsProcessor::build().
  TokenId choose(std::span<const float> logits, const SamplingParams& params, const TokenHistory& history,
                 const Place& place);
  // Up to `count` tokens in descending order of log p + g; valid until the next call. Precondition:
  // temperature > 0.
  std::span<const Arrival> choose_first(int count, std::span<const float> logits,
                                        const SamplingParams& params, const TokenHistory& history,
                                        const Place& place);

 private:
  LogitsProcessor logits_processor_;
  std::vector<Arrival> arrivals_;
};

}  // namespace outrider
