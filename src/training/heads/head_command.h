// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "outrider/result.h"
#include "training/heads/draft_head.h"

namespace CLI {
class App;
}

namespace outrider::training {

// Adds the kind's subcommand to the command line. The returned function runs it, once it has been parsed.
std::function<Status()> add_head_command(CLI::App& app, HeadKind kind);

}  // namespace outrider::training
