// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "outrider/token.h"

namespace outrider {

// How the next token is chosen from the target's logits. The steps are applied in the order of the fields.
struct SamplingParams {
  std::vector<std::pair<TokenId, float>> logit_bias;  // added to a token's logit; -infinity forbids it
  double repetition_penalty = 1.0;  // > 0; divides positive logits of tokens in prompt or output and
                                    // multiplies negative ones (CTRL, arXiv 1909.05858)
  double presence_penalty = 0.0;    // subtracted once from the logits of tokens already in the output
  double frequency_penalty = 0.0;   // subtracted from a token's logit per occurrence in the output
  double temperature = 0.0;         // 0: greedy decoding, ties go to the lowest id
  int32_t top_k = 0;                // keep the k likeliest tokens; 0: all
  double top_p = 1.0;  // keep the smallest set of likeliest tokens with at least this probability
  double min_p = 0.0;  // keep tokens with at least this fraction of the likeliest token's probability
  uint64_t seed = 0;
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
