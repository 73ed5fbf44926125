// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "outrider/token.h"

namespace outrider {

// "Don't repeat yourself": a token that would go on a repetition loses multiplier * base^(n - allowed_length)
// of its logit, where the n last tokens occurred before it earlier (p-e-w, text-generation-webui).
struct DryPenalty {
  double multiplier = 0.0;     // 0: none
  double base = 1.75;          // >= 1
  int32_t allowed_length = 2;  // repetitions that are shorter cost nothing
  int32_t last_n = -1;         // tokens of prompt and output that are searched; -1: all
};

// How the next token is chosen from the target's logits. The steps are applied in the order of the fields.
struct SamplingParams {
  std::vector<std::pair<TokenId, float>> logit_bias;  // added to a token's logit; -infinity forbids it
  double repetition_penalty = 1.0;  // > 0; divides positive logits of tokens in prompt or output and
                                    // multiplies negative ones (CTRL, arXiv 1909.05858)
  double presence_penalty = 0.0;    // subtracted once from the logits of tokens already in the output
  double frequency_penalty = 0.0;   // subtracted from a token's logit per occurrence in the output
  DryPenalty dry = {};              // subtracted from the logits of tokens that would repeat
  double temperature = 0.0;         // 0: greedy decoding, ties go to the lowest id
  double top_n_sigma = -1.0;        // keep tokens within so many standard deviations of all logits below the
                                    // largest one (arXiv 2411.07641); not above 0: all
  int32_t top_k = 0;                // keep the k likeliest tokens; 0: all
  double typical_p = 1.0;           // keep the tokens nearest to the expected information with at least this
                                    // probability (locally typical sampling, arXiv 2202.00666)
  double top_p = 1.0;  // keep the smallest set of likeliest tokens with at least this probability
  double min_p = 0.0;  // keep tokens with at least this fraction of the likeliest token's probability
  // Exclude top choices: with xtc_probability, drawn for each position, all tokens but the least likely one
  // of those with a probability of xtc_threshold or more are dropped (p-e-w, text-generation-webui).
  double xtc_probability = 0.0;
  double xtc_threshold = 0.1;
  uint64_t seed = 0;

  // Whether some tokens are dropped, whatever their logits.
  bool is_truncated() const {
    return top_n_sigma > 0.0 || top_k > 0 || typical_p < 1.0 || top_p < 1.0 || min_p > 0.0 ||
           xtc_probability > 0.0;
  }
  // Keeps all tokens.
  void drop_truncation() {
    top_n_sigma = -1.0;
    top_k = 0;
    typical_p = top_p = 1.0;
    min_p = xtc_probability = 0.0;
  }
};

// Sampling parameters that a model's generation_config.json (Hugging Face) or an option sets; unset ones
// leave the request's value as it is.
struct SamplingChoices {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int32_t> top_k;

  void apply_to(SamplingParams& params) const {
    params.temperature = temperature.value_or(params.temperature);
    params.top_p = top_p.value_or(params.top_p);
    params.min_p = min_p.value_or(params.min_p);
    params.repetition_penalty = repetition_penalty.value_or(params.repetition_penalty);
    params.top_k = top_k.value_or(params.top_k);
  }
};

// A distribution over a few tokens of the vocabulary: ids ascending, probabilities > 0 that sum to 1.
struct Distribution {
  std::vector<TokenId> tokens;
  std::vector<double> probabilities;

  bool empty() const { return tokens.empty(); }
};

}  // namespace outrider
