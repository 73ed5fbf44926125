// SPDX-License-Identifier: Apache-2.0
#include "sampling/target_law.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace outrider {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool changes_logits(const SamplingParams& params) {
  return !params.logit_bias.empty() || params.repetition_penalty != 1.0 || params.presence_penalty != 0.0 ||
         params.frequency_penalty != 0.0;
}

// -1 when every logit is -infinity or NaN.
TokenId lowest_argmax(std::span<const float> logits) {
  float best = -std::numeric_limits<float>::infinity();
  TokenId token = -1;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > best) {
      best = logits[i];
      token = static_cast<TokenId>(i);
    }
  }
  return token;
}

double penalised(double logit, const TokenHistory::Counts& counts, const SamplingParams& params) {
  if (counts.prompt > 0 || counts.output > 0) {
    logit = logit > 0.0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  }
  if (counts.output > 0) logit -= params.presence_penalty + params.frequency_penalty * counts.output;
  return logit;
}

void set_one_hot(TokenId token, Distribution& law) {
  law.tokens.assign(1, token);
  law.probabilities.assign(1, 1.0);
}

constexpr auto kLikelierFirst = [](const auto& a, const auto& b) {
  return a.value != b.value ? a.value > b.value : a.token < b.token;
};

}  // namespace

const Distribution& LawBuilder::build(std::span<const float> logits, const SamplingParams& params,
                                      const TokenHistory& history) {
  law_.tokens.clear();
  law_.probabilities.clear();
  if (params.temperature == 0.0 && !changes_logits(params)) {
    if (const TokenId token = lowest_argmax(logits); token >= 0) set_one_hot(token, law_);
    return law_;
  }
  candidates_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) candidates_[i] = {static_cast<TokenId>(i), logits[i]};
  if (changes_logits(params)) adjust(params, history);
  if (params.temperature == 0.0) {
    set_greedy();
    return law_;
  }
  drop_impossible();
  if (params.top_k > 0) keep_top_k(static_cast<size_t>(params.top_k));
  exponentiate(params.temperature);
  if (params.top_p < 1.0) keep_top_p(params.top_p);
  if (params.min_p > 0.0) keep_min_p(params.min_p);
  normalise();
  return law_;
}

void LawBuilder::adjust(const SamplingParams& params, const TokenHistory& history) {
  const auto inside = [this](TokenId token) {
    return token >= 0 && static_cast<size_t>(token) < candidates_.size();
  };
  for (const auto& [token, bias] : params.logit_bias) {
    if (inside(token)) candidates_[static_cast<size_t>(token)].value += bias;
  }
  for (const auto& [token, counts] : history.counts()) {
    if (!inside(token)) continue;
    double& logit = candidates_[static_cast<size_t>(token)].value;
    logit = penalised(logit, counts, params);
  }
}

void LawBuilder::set_greedy() {
  Candidate best{-1, -kInfinity};
  for (const Candidate& candidate : candidates_) {
    if (candidate.value > best.value) best = candidate;
  }
  if (best.token >= 0) set_one_hot(best.token, law_);
}

void LawBuilder::drop_impossible() {
  std::erase_if(candidates_, [](const Candidate& c) { return !(c.value > -kInfinity); });  // NaN goes too
  const bool infinite = std::any_of(candidates_.begin(), candidates_.end(),
                                    [](const Candidate& c) { return c.value == kInfinity; });
  if (!infinite) return;
  std::erase_if(candidates_, [](const Candidate& c) { return c.value != kInfinity; });
  for (Candidate& candidate : candidates_) candidate.value = 0.0;
}

void LawBuilder::keep_top_k(size_t k) {
  if (k >= candidates_.size()) return;
  std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(k), candidates_.end(),
                   kLikelierFirst);
  candidates_.resize(k);
}

void LawBuilder::exponentiate(double temperature) {
  double largest = -kInfinity;
  for (const Candidate& candidate : candidates_) largest = std::max(largest, candidate.value);
  for (Candidate& candidate : candidates_) {
    candidate.value = std::exp((candidate.value - largest) / temperature);
  }
  // What is left must stay > 0 when it is divided by the sum of at most 2^31 weights <= 1.
  std::erase_if(candidates_, [](const Candidate& c) { return c.value < std::numeric_limits<double>::min(); });
}

// Sorts only as far down as the nucleus reaches, in blocks of growing size.
void LawBuilder::keep_top_p(double top_p) {
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += candidate.value;
  double reached = 0.0;
  size_t sorted = 0;
  for (size_t block = 64; sorted < candidates_.size(); block *= 4) {
    const size_t end = std::min(candidates_.size(), sorted + block);
    const auto from = candidates_.begin() + static_cast<ptrdiff_t>(sorted);
    const auto to = candidates_.begin() + static_cast<ptrdiff_t>(end);
    if (to != candidates_.end()) std::nth_element(from, to, candidates_.end(), kLikelierFirst);
    std::sort(from, to, kLikelierFirst);
    for (; sorted < end; ++sorted) {
      reached += candidates_[sorted].value;
      if (reached >= top_p * total) {
        candidates_.resize(sorted + 1);
        return;
      }
    }
  }
}

void LawBuilder::keep_min_p(double min_p) {
  std::erase_if(candidates_, [min_p](const Candidate& c) { return c.value < min_p; });
}

void LawBuilder::normalise() {
  constexpr auto kLowerId = [](const Candidate& a, const Candidate& b) { return a.token < b.token; };
  if (!std::is_sorted(candidates_.begin(), candidates_.end(), kLowerId)) {
    std::sort(candidates_.begin(), candidates_.end(), kLowerId);
  }
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += candidate.value;
  for (const Candidate& candidate : candidates_) {
    law_.tokens.push_back(candidate.token);
    law_.probabilities.push_back(candidate.value / total);
  }
}

}  // namespace outrider
