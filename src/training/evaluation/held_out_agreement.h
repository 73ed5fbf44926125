// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <vector>

#include "outrider/result.h"
#include "training/head_data/head_data.h"
#include "training/head_data/state_source.h"
#include "training/heads/draft_head.h"

namespace outrider::training {

struct HeldOutResult {
  double loss = 0.0;
  std::vector<double>
      agreement;  // by depth: share of drafts that are the target's likeliest so far and there

  std::vector<std::vector<double>> ranks;  // by depth, see DepthAgreement::ranks; or empty

  // What chains of greedy drafts come to along this text, the target's own token included.
  double tokens_per_pass() const;
};

// Over held-out windows, the same ones every time.
Result<HeldOutResult> measure_held_out(const DraftHead& head, const HeadData& data, StateSource& source,
                                       at::Device device);

}  // namespace outrider::training
