// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/speculation_limits.h"

#include <limits>
#include <numeric>

namespace outrider {

SpeculationLimits::SpeculationLimits(const SpeculativeOptions& options)
    : by_batch_(options.draft_len_by_batch),
      window_(static_cast<size_t>(options.acceptance_window)),
      threshold_(options.acceptance_length_threshold) {}

int SpeculationLimits::max_draft_len(int sequences) const {
  if (has_ended_) return 0;
  int longest = std::numeric_limits<int>::max();
  for (const BatchDraftLen& row : by_batch_) {
    if (sequences >= row.sequences) longest = row.max_draft_len;
  }
  return longest;
}

void SpeculationLimits::add_finished(int64_t accepted, int64_t drafts) {
  if (window_ == 0 || drafts == 0) return;
  accepted_.push_back(static_cast<double>(accepted) / static_cast<double>(drafts));
  if (accepted_.size() > window_) accepted_.pop_front();
  if (accepted_.size() < window_) return;
  const double sum = std::accumulate(accepted_.begin(), accepted_.end(), 0.0);
  has_ended_ = has_ended_ || sum < threshold_ * static_cast<double>(window_);
}

}  // namespace outrider
