// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "outrider/result.h"
#include "training/head_data/frozen_target.h"
#include "training/head_data/head_options.h"
#include "training/head_data/text_writer.h"

namespace outrider::training {

// A writer that uses the serving engine or, where the target was moved to a GPU, libtorch there. The target
// must outlive it.
Result<std::unique_ptr<TextWriter>> open_writer(const HeadOptions& options, const FrozenTarget& target);

}  // namespace outrider::training
