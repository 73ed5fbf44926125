// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

#include "outrider/result.h"
#include "training/head_data/head_batches.h"
#include "training/head_data/head_data.h"
#include "training/head_data/state_source.h"

namespace outrider::training {

struct HeldOutResult {
  double loss = 0.0;
  // By depth: share of the drafts that consist of the target's likeliest tokens up to this depth.
  std::vector<double> agreement;
  std::vector<std::vector<double>> ranks;  // by depth, see DepthAgreement::ranks; or empty

  // Expected tokens per target pass of greedy chains along this text, the target's own token included.
  double tokens_per_pass() const;
};

// Measures a drafter's loss over held-out windows; every call takes the same windows.
Result<HeldOutResult> measure_held_out(const std::function<HeadLoss(const HeadBatch&)>& loss_of,
                                       const HeadData& data, StateSource& source, at::Device device);

}  // namespace outrider::training
