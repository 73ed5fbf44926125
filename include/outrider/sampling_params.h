// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "outrider/token.h"

namespace outrider {

// How the next token is chosen from the target's logits. Steps are applied in the order of the fields.
struct SamplingParams {
  std::vector<std::pair<TokenId, float>> logit_bias;  // added to the logit; -infinity forbids the token
  double repetition_penalty = 1.0;  // > 0; positive logits of tokens seen in prompt or output are divided by
                                    // it, negative ones multiplied (CTRL, arXiv 1909.05858)
  double presence_penalty = 0.0;    // subtracted once from tokens already in the output
  double frequency_penalty = 0.0;   // subtracted once per occurrence in the output
  double temperature = 0.0;         // 0: greedy, ties go to the lowest id
  int32_t top_k = 0;                // keep the k likeliest; 0: all
  double top_p = 1.0;               // keep the smallest set of likeliest tokens that reaches this probability
  double min_p = 0.0;  // keep tokens with at least this fraction of the likeliest one's probability
  uint64_t seed = 0;
};

// Some of them, as the makers of a model recommend them (Hugging Face's generation_config.json) or an option
// sets them.
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
