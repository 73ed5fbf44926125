// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/result.h"
#include "training/head_data/frozen_target.h"
#include "training/head_data/head_options.h"
#include "training/heads/draft_head.h"
#include "training/job/plan.h"

namespace outrider::training {

// Measures the rates of this machine in some seconds: writes short texts, and trains a head that is thrown
// away on random tokens. Errors: the target cannot be run, or the head not trained.
Result<JobRates> measure_rates(const HeadRecipe& recipe, const HeadOptions& options, FrozenTarget& target);

// Bytes of memory that training takes, about: the target as it is read and as it serves, the head's
// parameters with gradients and moments, and the logits of a step.
int64_t training_memory(int64_t target_bytes, int64_t parameters, const ModelConfig& target,
                        const HeadOptions& options);

}  // namespace outrider::training
