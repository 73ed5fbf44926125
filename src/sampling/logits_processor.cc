// SPDX-License-Identifier: Apache-2.0
#include "sampling/logits_processor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/portable_math.h"
#include "sampling/logit_scan.h"

namespace outrider {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double penalised(double logit, const TokenHistory::Counts& counts, const SamplingParams& params) {
  if (counts.prompt > 0 || counts.output > 0) {
    logit = logit > 0.0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  }
  if (counts.output > 0) logit -= params.presence_penalty + params.frequency_penalty * counts.output;
  return logit;
}

void set_one_hot(TokenId token, Distribution& distribution) {
  distribution.tokens.assign(1, token);
  distribution.probabilities.assign(1, 1.0);
}

constexpr auto kLikelierFirst = [](const auto& a, const auto& b) {
  return a.value != b.value ? a.value > b.value : a.token < b.token;
};

constexpr auto kLowerId = [](const auto& a, const auto& b) { return a.token < b.token; };

}  // namespace

bool leaves_logits_alone(const SamplingParams& params) {
  return params.logit_bias.empty() && params.repetition_penalty == 1.0 && params.presence_penalty == 0.0 &&
         params.frequency_penalty == 0.0 && params.dry.multiplier == 0.0;
}

const Distribution& LogitsProcessor::build(std::span<const float> logits, const SamplingParams& params,
                                           const TokenHistory& history, double draw) {
  distribution_.tokens.clear();
  distribution_.probabilities.clear();
  if (params.temperature == 0.0 && leaves_logits_alone(params)) {
    if (const TokenId token = largest_logit(logits).token; token >= 0) set_one_hot(token, distribution_);
    return distribution_;
  }
  candidates_.reserve(logits.size());
  found_.reserve(logits.size());
  distribution_.tokens.reserve(logits.size());
  distribution_.probabilities.reserve(logits.size());
  dry_ = repetitions_.penalties(params.dry, history);
  if (!keep_likeliest(logits, params, history)) {
    collect(logits, params, history);
    if (params.temperature == 0.0) {
      set_greedy();
      return distribution_;
    }
    drop_impossible();
    if (params.top_n_sigma > 0.0) keep_top_n_sigma(params.top_n_sigma);
    if (params.top_k > 0) keep_top_k(static_cast<size_t>(params.top_k));
    exponentiate(params.temperature);
    if (params.typical_p < 1.0) keep_typical(params.typical_p);
    const double total = sum_of_weights();
    if (params.top_p < 1.0) keep_top_p(params.top_p, {total, total});
  }
  if (params.min_p > 0.0) keep_min_p(params.min_p);
  if (passes(params.xtc_probability, draw)) exclude_top(params.xtc_threshold);
  sort_by_id();  // first, because the order of the sum decides its bits
  divide_by(sum_of_weights());
  return distribution_;
}

const Distribution& LogitsProcessor::list_likeliest(int count, std::span<const float> logits,
                                                    const SamplingParams& params,
                                                    const TokenHistory& history) {
  distribution_.tokens.clear();
  distribution_.probabilities.clear();
  dry_ = repetitions_.penalties(params.dry, history);
  const std::span<const float> others = set_adjusted_apart(logits, params, history);
  top_tokens(others, static_cast<size_t>(count), found_);
  const size_t adjusted = candidates_.size();
  for (const TokenId token : found_) candidates_.push_back({token, others[static_cast<size_t>(token)]});
  double largest = -kInfinity;
  for (const Candidate& candidate : candidates_) largest = std::max(largest, candidate.value);
  if (std::isinf(largest)) {  // no token is left, or tokens of +infinity share all mass
    SamplingParams whole = params;
    whole.drop_truncation();
    return build(logits, whole, history);
  }
  double total = exp_sum(others, largest, params.temperature);
  for (size_t i = 0; i < adjusted; ++i)
    total += portable_exp((candidates_[i].value - largest) / params.temperature);
  drop_impossible();
  keep_top_k(static_cast<size_t>(count));
  exponentiate(params.temperature);
  sort_by_id();
  divide_by(total);
  return distribution_;
}

// Makes candidates of all tokens, or of a subset that contains all tokens that top-k can keep.
void LogitsProcessor::collect(std::span<const float> logits, const SamplingParams& params,
                              const TokenHistory& history) {
  const bool reads_all = params.temperature == 0.0 || params.top_n_sigma > 0.0;
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < logits.size() && !reads_all) {
    return collect_top(logits, params, history);
  }
  candidates_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) candidates_[i] = {static_cast<TokenId>(i), logits[i]};
  if (!leaves_logits_alone(params)) adjust(params, history);
}

// Makes candidates of all tokens with bias or penalty and of the top k of the others.
void LogitsProcessor::collect_top(std::span<const float> logits, const SamplingParams& params,
                                  const TokenHistory& history) {
  logits = set_adjusted_apart(logits, params, history);
  top_tokens(logits, static_cast<size_t>(params.top_k), found_);
  for (const TokenId token : found_) candidates_.push_back({token, logits[static_cast<size_t>(token)]});
}

// Makes candidates of the tokens with bias or penalty; returns the logits with NaN in their place.
std::span<const float> LogitsProcessor::set_adjusted_apart(std::span<const float> logits,
                                                           const SamplingParams& params,
                                                           const TokenHistory& history) {
  candidates_.clear();
  if (leaves_logits_alone(params)) return logits;
  const auto set_apart = [&](TokenId token) {
    if (token < 0 || static_cast<size_t>(token) >= logits.size()) return;
    float& logit = unadjusted_[static_cast<size_t>(token)];
    if (std::isnan(logit)) return;  // already a candidate, or NaN in the input
    candidates_.push_back({token, logit});
    logit = std::numeric_limits<float>::quiet_NaN();
  };
  unadjusted_.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : params.logit_bias) set_apart(token);
  // Tokens that were taken back have no counts: the bits of a sum must not tell that they were there.
  // The tokens of dry_ have counts.
  for (const auto& [token, counts] : history.entries()) {
    if (counts.prompt > 0 || counts.output > 0) set_apart(token);
  }
  adjust(params, history);
  return unadjusted_;
}

// Fast path of top-p and min-p without top-k: computes exact weights of the likeliest tokens only and a fast
// approximate sum of all weights. Returns false if the approximation does not determine where the nucleus
// ends, or if too many tokens would be needed; then the caller computes all weights.
bool LogitsProcessor::keep_likeliest(std::span<const float> logits, const SamplingParams& params,
                                     const TokenHistory& history) {
  const double temperature = params.temperature;
  if (params.top_k > 0 || (params.top_p == 1.0 && params.min_p == 0.0)) return false;
  if (params.top_n_sigma > 0.0 || params.typical_p < 1.0) return false;
  if (temperature < 1e-6 || temperature > 1e6) return false;
  const auto count = static_cast<double>(logits.size());
  logits = set_adjusted_apart(logits, params, history);
  const LargestLogit found = largest_logit(logits);
  double largest = found.token < 0 ? -kInfinity : found.value;
  for (const Candidate& candidate : candidates_) largest = std::max(largest, candidate.value);
  if (std::isinf(largest)) return false;
  drop_impossible();

  double total = 0.0;
  double depth = 0.0;  // tokens further below the largest logit, in units of temperature, cannot be kept
  if (params.top_p < 1.0) {
    total = exp_sum(logits, largest, temperature);
    for (const Candidate& candidate : candidates_) {
      total += portable_exp((candidate.value - largest) / temperature);
    }
    depth = portable_log(
        count / ((1.0 - params.top_p) * total));  // the tokens below have less than 1 - top_p of the mass
  } else {
    depth = -portable_log(params.min_p);
  }
  constexpr double kMargin = 1e-6;  // far above the rounding errors of these numbers
  const double min =
      std::max<double>(largest - (depth + kMargin) * temperature, std::numeric_limits<float>::lowest());
  const float bound = std::nextafter(static_cast<float>(min), -std::numeric_limits<float>::infinity());
  tokens_from(logits, bound, found_);
  if (found_.size() > logits.size() / 2) return false;
  for (const TokenId token : found_) candidates_.push_back({token, logits[static_cast<size_t>(token)]});
  exponentiate(temperature);
  if (params.top_p == 1.0) return true;
  const double error = total * (1e-9 + count * 0x1p-51);
  if (!keep_top_p(params.top_p, {total - error, total + error})) return false;
  return candidates_.back().value > portable_exp((bound - largest) / temperature) * (1.0 + kMargin);
}

// Applies bias and penalties to the candidates, which it sorts by id.
void LogitsProcessor::adjust(const SamplingParams& params, const TokenHistory& history) {
  if (!std::is_sorted(candidates_.begin(), candidates_.end(), kLowerId)) {
    std::sort(candidates_.begin(), candidates_.end(), kLowerId);
  }
  const auto find = [this](TokenId token) -> Candidate* {
    const auto found =
        std::lower_bound(candidates_.begin(), candidates_.end(), Candidate{token, 0}, kLowerId);
    return found == candidates_.end() || found->token != token ? nullptr : &*found;
  };
  for (const auto& [token, bias] : params.logit_bias) {
    if (Candidate* candidate = find(token)) candidate->value += bias;
  }
  for (const auto& [token, counts] : history.entries()) {
    if (Candidate* candidate = find(token)) candidate->value = penalised(candidate->value, counts, params);
  }
  for (const auto& [token, penalty] : dry_) {
    if (Candidate* candidate = find(token)) candidate->value -= penalty;
  }
}

void LogitsProcessor::set_greedy() {
  Candidate best{-1, -kInfinity};
  for (const Candidate& candidate : candidates_) {
    if (candidate.value > best.value) best = candidate;
  }
  if (best.token >= 0) set_one_hot(best.token, distribution_);
}

void LogitsProcessor::drop_impossible() {
  std::erase_if(candidates_, [](const Candidate& c) { return !(c.value > -kInfinity); });  // NaN goes too
  const bool infinite = std::any_of(candidates_.begin(), candidates_.end(),
                                    [](const Candidate& c) { return c.value == kInfinity; });
  if (!infinite) return;
  std::erase_if(candidates_, [](const Candidate& c) { return c.value != kInfinity; });
  for (Candidate& candidate : candidates_) candidate.value = 0.0;
}

// The deviation is taken over the candidates, by id, so that the sums have one order.
void LogitsProcessor::keep_top_n_sigma(double n) {
  double largest = -kInfinity, sum = 0.0, squares = 0.0;
  for (const Candidate& candidate : candidates_) {
    largest = std::max(largest, candidate.value);
    sum += candidate.value;
  }
  const auto count = static_cast<double>(candidates_.size());
  for (const Candidate& candidate : candidates_) {
    const double apart = candidate.value - sum / count;
    squares += apart * apart;
  }
  const double least = largest - n * std::sqrt(squares / count);
  std::erase_if(candidates_, [least](const Candidate& c) { return c.value < least; });
}

void LogitsProcessor::keep_top_k(size_t k) {
  if (k >= candidates_.size()) return;
  std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(k), candidates_.end(),
                   kLikelierFirst);
  candidates_.resize(k);
}

void LogitsProcessor::exponentiate(double temperature) {
  double largest = -kInfinity;
  for (const Candidate& candidate : candidates_) largest = std::max(largest, candidate.value);
  for (Candidate& candidate : candidates_) {
    candidate.value = portable_exp((candidate.value - largest) / temperature);
  }
  // The remaining weights must stay > 0 after division by the sum of at most 2^31 weights <= 1.
  std::erase_if(candidates_, [](const Candidate& c) { return c.value < std::numeric_limits<double>::min(); });
}

double LogitsProcessor::sum_of_weights() const {
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += candidate.value;
  return total;
}

// Keeps the nucleus; sorts only as many candidates as it needs, in blocks of growing size. Returns false if
// the bounds of the total do not determine where the nucleus ends.
bool LogitsProcessor::keep_top_p(double top_p, Bounds total) {
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
      if (reached < top_p * total.low) continue;
      candidates_.resize(sorted + 1);
      return reached >= top_p * total.high;
    }
  }
  return false;
}

// Keeps the tokens of which the information, -log p, is nearest to its mean, the entropy.
void LogitsProcessor::keep_typical(double typical_p) {
  const double total = sum_of_weights();
  double entropy = 0.0;
  for (const Candidate& candidate : candidates_)
    entropy -= candidate.value / total * portable_log(candidate.value / total);
  surprises_.clear();
  for (const Candidate& candidate : candidates_)
    surprises_.push_back({candidate, std::abs(-portable_log(candidate.value / total) - entropy)});
  std::ranges::sort(surprises_, [](const Surprise& a, const Surprise& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.candidate.token < b.candidate.token;
  });
  candidates_.clear();
  double reached = 0.0;
  for (size_t i = 0; i < surprises_.size() && reached < typical_p * total; ++i) {
    reached += surprises_[i].candidate.value;
    candidates_.push_back(surprises_[i].candidate);
  }
}

void LogitsProcessor::exclude_top(double threshold) {
  const double least = threshold * sum_of_weights();
  const auto is_top = [least](const Candidate& c) { return c.value >= least; };
  const auto last = std::ranges::max_element(candidates_, [&](const Candidate& a, const Candidate& b) {
    return is_top(a) != is_top(b) ? is_top(b) : kLikelierFirst(a, b);
  });
  if (last == candidates_.end() || !is_top(*last)) return;
  const TokenId kept = last->token;
  std::erase_if(candidates_, [&](const Candidate& c) { return is_top(c) && c.token != kept; });
}

void LogitsProcessor::keep_min_p(double min_p) {
  std::erase_if(candidates_, [min_p](const Candidate& c) { return c.value < min_p; });
}

void LogitsProcessor::sort_by_id() {
  if (!std::is_sorted(candidates_.begin(), candidates_.end(), kLowerId)) {
    std::sort(candidates_.begin(), candidates_.end(), kLowerId);
  }
}

void LogitsProcessor::divide_by(double total) {
  for (const Candidate& candidate : candidates_) {
    distribution_.tokens.push_back(candidate.token);
    distribution_.probabilities.push_back(candidate.value / total);
  }
}

TokenId CoupledChooser::choose(std::span<const float> logits, const SamplingParams& params,
                               const TokenHistory& history, const Place& place) {
  if (params.temperature > 0.0) {
    const auto first = choose_first(1, logits, params, history, place);
    return first.empty() ? -1 : first[0].token;
  }
  if (leaves_logits_alone(params)) return largest_logit(logits).token;
  const Distribution& distribution = logits_processor_.build(logits, params, history);
  return distribution.empty() ? -1 : distribution.tokens[0];
}

std::span<const Arrival> CoupledChooser::choose_first(int count, std::span<const float> logits,
                                                      const SamplingParams& params,
                                                      const TokenHistory& history, const Place& place) {
  if (leaves_logits_alone(params) && !params.is_truncated()) {
    place.randomness->coupled_race(logits, params.temperature, place.position, count, arrivals_);
  } else {
    const double draw = place.randomness->exclusion_draw(place.position);
    place.randomness->coupled_race(logits_processor_.build(logits, params, history, draw), place.position,
                                   count, arrivals_);
  }
  return arrivals_;
}

}  // namespace outrider
