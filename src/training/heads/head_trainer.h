// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/result.h"
#include "training/heads/draft_head.h"

namespace outrider::training {

// Trains a learned drafter by its recipe. Writes the best export so far (config.json, model.safetensors),
// report.html and checkpoints into options.out.
Status train_head(const HeadRecipe& recipe, HeadOptions options);

}  // namespace outrider::training
