// SPDX-License-Identifier: Apache-2.0
#include "sampling/log_probability.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sampling/logit_scan.h"

namespace outrider {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

LogSoftmax::LogSoftmax(std::span<const float> logits) : logits_(logits) {
  const LargestLogit largest = largest_logit(logits);
  if (largest.token < 0) return;
  is_infinite_ = std::isinf(largest.value);
  total_ = is_infinite_
               ? std::log(static_cast<double>(std::count(logits.begin(), logits.end(), largest.value)))
               : largest.value + std::log(exp_sum(logits, largest.value, /*temperature=*/1.0));
}

double LogSoftmax::of(TokenId token) const {
  const double logit = logits_[static_cast<size_t>(token)];
  if (!(logit > -kInfinity)) return -kInfinity;
  if (is_infinite_) return logit == kInfinity ? -total_ : -kInfinity;
  return logit - total_;
}

TokenLogprobs LogSoftmax::list(TokenId token, int top) const {
  TokenLogprobs result{.logprob = static_cast<float>(of(token)), .top = {}};
  if (top == 0) return result;
  std::vector<TokenId> found;
  top_tokens(logits_, static_cast<size_t>(top), found);
  result.top.reserve(found.size());
  for (const TokenId one : found) result.top.emplace_back(one, static_cast<float>(of(one)));
  std::sort(result.top.begin(), result.top.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return result;
}

}  // namespace outrider
