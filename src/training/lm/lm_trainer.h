// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/result.h"
#include "training/lm/lm_options.h"

namespace outrider::training {

// Trains a language model, from data or by distillation, and leaves a Hugging Face folder in options.out.
Status train_lm(const LmOptions& options);

}  // namespace outrider::training
