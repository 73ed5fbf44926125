// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "training/core/run_history.h"

namespace outrider::training {

// Renders an SVG document of the loss over steps: a line for training, dots for held-out text.
std::string render_loss_plot(const std::string& title, const RunHistory& history);

}  // namespace outrider::training
