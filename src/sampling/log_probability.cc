// SPDX-License-Identifier: Apache-2.0
#include "sampling/log_probability.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/portable_math.h"
#include "sampling/logit_scan.h"

namespace outrider {
namespace {

constexpr double kInfiniteLogit = std::numeric_limits<double>::infinity();

}  // namespace

LogSoftmax::LogSoftmax(std::span<const float> logits, size_t tokens)
    : logits_(logits.first(std::min(logits.size(), tokens))) {
  const LargestLogit largest = largest_logit(logits);
  if (largest.token < 0) return;
  is_infinite_ = std::isinf(largest.value);
  total_ = is_infinite_
               ? portable_log(static_cast<double>(std::count(logits.begin(), logits.end(), largest.value)))
               : largest.value + portable_log(exp_sum(logits, largest.value, /*temperature=*/1.0));
}

double LogSoftmax::of(TokenId token) const {
  const double logit = logits_[static_cast<size_t>(token)];
  if (!(logit > -kInfiniteLogit)) return -kInfiniteLogit;
  if (is_infinite_) return logit == kInfiniteLogit ? -total_ : -kInfiniteLogit;
  return logit - total_;
}

int64_t LogSoftmax::rank(TokenId token) const {
  const float own = logits_[static_cast<size_t>(token)];
  const bool is_possible = own > -kInfiniteLogit;
  const float min = is_possible ? own : -std::numeric_limits<float>::infinity();
  const auto is_equal = [&](float other) { return is_possible ? other == own : !(other > min); };
  const auto smaller_ids = logits_.first(static_cast<size_t>(token));
  return 1 + std::count_if(logits_.begin(), logits_.end(), [&](float other) { return other > min; }) +
         std::count_if(smaller_ids.begin(), smaller_ids.end(), is_equal);
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
