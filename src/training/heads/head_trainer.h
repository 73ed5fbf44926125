// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/result.h"
#include "training/heads/draft_head.h"

namespace outrider::training {

// Trains a learned drafter of that kind. options.out gets the best export so far (config.json,
// model.safetensors), report.html, and checkpoints.
Status train_head(const HeadKind& kind, HeadOptions options);

}  // namespace outrider::training
