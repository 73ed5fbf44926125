// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "outrider/result.h"
#include "outrider/sampling_params.h"
#include "sampling/token_history.h"

namespace outrider {

// Errors name the parameter, its range and the value found.
Status validate(const SamplingParams& params);

// The law of the next token: bias, penalties, temperature, top-k, top-p, min-p, softmax in f64. Used alike
// for target and draft logits. At temperature 0 all mass is on the lowest id among the largest values. NaN
// counts as -infinity; when no token is left (every logit -infinity) the law is empty. Keeps its scratch
// memory between calls.
class LawBuilder {
 public:
  // logits: [vocab].
  const Distribution& build(std::span<const float> logits, const SamplingParams& params,
                            const TokenHistory& history);

 private:
  struct Candidate {
    TokenId token;
    double logit;
  };
  std::vector<Candidate> candidates_;
  Distribution law_;
};

}  // namespace outrider
