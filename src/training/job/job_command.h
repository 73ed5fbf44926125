// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "outrider/result.h"

namespace CLI {
class App;
}

namespace outrider::training {

// Adds the subcommand `head`. The returned function runs it after the command line has been parsed.
std::function<Status()> add_job_command(CLI::App& app);

}  // namespace outrider::training
