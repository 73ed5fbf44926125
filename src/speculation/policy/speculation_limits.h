// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "outrider/speculative_options.h"

namespace outrider {

// Limits on drafting that the options set by hand, for every policy: by the size of the batch, and by the
// acceptance of finished requests.
class SpeculationLimits {
 public:
  explicit SpeculationLimits(const SpeculativeOptions& options);

  // Levels that a tree may have while so many sequences run together; 0: nothing is drafted.
  int max_draft_len(int sequences) const;
  // Learns from a finished request: `accepted` drafted tokens in `drafts` passes that verified some.
  void add_finished(int64_t accepted, int64_t drafts);

 private:
  std::vector<BatchDraftLen> by_batch_;
  size_t window_;
  double threshold_;
  std::deque<double> accepted_;  // per pass, of the last window_ requests that drafted
  bool has_ended_ = false;       // drafting is over for good
};

}  // namespace outrider
