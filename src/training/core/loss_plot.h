// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "training/core/run_history.h"

namespace outrider::training {

// The loss over steps as an SVG document; the training loss as a line, held-out points on top.
std::string render_loss_plot(const std::string& title, const RunHistory& history);

}  // namespace outrider::training
