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

// Engine options with everything filled in that depends on which models there are: the default target, and
// the default draft for a DraftTarget that names none.
Result<EngineOptions> complete_engine_options(const Settings& settings);

// For commands that compare with and without speculation: as above, and where no speculation was asked for,
// the default draft on the default target, NGram on any other.
Result<EngineOptions> complete_speculative_options(const Settings& settings);

// For a server: where no speculation was asked for, auto, which drafts only as much as pays.
Result<EngineOptions> complete_serving_options(const Settings& settings);

// Opens the model that `settings` names, or the default one.
Result<std::unique_ptr<Engine>> open_engine(const Settings& settings);

}  // namespace outrider
