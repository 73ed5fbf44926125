// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "outrider/result.h"
#include "training/heads/draft_head.h"

namespace CLI {
class App;
}

namespace outrider::training {

// Adds the recipe's subcommand. The returned function runs it after the command line has been parsed.
std::function<Status()> add_head_command(CLI::App& app, HeadRecipe recipe);

}  // namespace outrider::training
