// SPDX-License-Identifier: Apache-2.0
#include "corpus/context_search.h"

#include <algorithm>

namespace outrider {

template <typename Id>
ContextSearch::Comparison ContextSearch::compare_ids(int64_t place) const {
  const Id* nearest = reinterpret_cast<const Id*>(corpus_->text().bytes.data()) + place - 1;
  const auto length = static_cast<int>(context_.size());
  for (int shared = 0; shared < length; ++shared) {
    const TokenId there = nearest[-shared], here = context_[static_cast<size_t>(length - 1 - shared)];
    if (there != here) return {shared, there < here};
  }
  return {length, false};
}

ContextSearch::Comparison ContextSearch::compare(int64_t index) const {
  int64_t place = corpus_->places()[static_cast<size_t>(index)];
  // A place of a damaged file that is none becomes the first one, which has only separators before it.
  if (place < kTextPadding || place >= corpus_->text().size()) place = kTextPadding;
  return corpus_->text().width == 2 ? compare_ids<uint16_t>(place) : compare_ids<TokenId>(place);
}

int ContextSearch::find(std::span<const TokenId> context) {
  context_ = context.last(std::min(context.size(), static_cast<size_t>(kContextDepth)));
  if (context_.empty() || context_.back() < 0 || context_.back() >= corpus_->text().separator) return 0;
  const auto last = static_cast<size_t>(context_.back());
  const auto count = static_cast<int64_t>(corpus_->places().size());
  all_ = {.begin = std::min<int64_t>(corpus_->firsts()[last], count),
          .end = std::min<int64_t>(corpus_->firsts()[last + 1], count)};
  if (all_.size() <= 0) return 0;
  int64_t low = all_.begin, high = all_.end;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (compare(middle).is_before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  range_ = {low, low};
  const int below = low > all_.begin ? compare(low - 1).shared : 0;
  const int above = low < all_.end ? compare(low).shared : 0;
  return std::max(below, above);
}

PlaceRange ContextSearch::range(int length) {
  if (length == 1) return range_ = all_;
  // Steps that double until they leave the range, then halve.
  int64_t step = 1;
  while (range_.begin - step >= all_.begin && shares(range_.begin - step, length)) {
    range_.begin -= step;
    step *= 2;
  }
  for (; step > 0; step /= 2) {
    if (range_.begin - step >= all_.begin && shares(range_.begin - step, length)) range_.begin -= step;
  }
  step = 1;
  while (range_.end + step <= all_.end && shares(range_.end + step - 1, length)) {
    range_.end += step;
    step *= 2;
  }
  for (; step > 0; step /= 2) {
    if (range_.end + step <= all_.end && shares(range_.end + step - 1, length)) range_.end += step;
  }
  return range_;
}

}  // namespace outrider
