// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "outrider/result.h"
#include "training/head_data/head_data.h"
#include "training/heads/draft_head.h"

namespace outrider::training {

// Opens the target where options.target_device says. Errors: a family that this kind of drafter does not
// take, or windows longer than the target's context.
Result<std::unique_ptr<FrozenTarget>> open_target(const HeadRecipe& recipe, const HeadOptions& options);

// The text that options name; the target writes what is missing of it.
Result<HeadData> open_head_data(const HeadOptions& options, const FrozenTarget& target);

// Trains a learned drafter by its recipe. Writes the best export so far (config.json, model.safetensors),
// report.html and checkpoints into options.out.
Status train_head(const HeadRecipe& recipe, HeadOptions options);

}  // namespace outrider::training
