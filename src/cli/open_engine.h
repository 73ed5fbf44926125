// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "config/settings.h"
#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

// The model the user named, or the default target. Error: none was named and none is installed.
Result<std::filesystem::path> chosen_model(const Settings& settings);

// Engine options with everything filled in that depends on which models there are: the default target, the
// default draft where a method needs a draft model and none is named, and a head beside the target where a
// method needs one.
Result<EngineOptions> complete_engine_options(const Settings& settings);

// As above for commands that compare with and without speculation: where none was asked for, they use the
// default draft on the default target, NGram on any other.
Result<EngineOptions> complete_speculative_options(const Settings& settings);

// As above for a server: where no speculation was asked for, it uses Auto, which drafts only as much as pays.
Result<EngineOptions> complete_serving_options(const Settings& settings);

// Opens the model that `settings` names, or the default one.
Result<std::unique_ptr<Engine>> open_engine(const Settings& settings);

}  // namespace outrider
