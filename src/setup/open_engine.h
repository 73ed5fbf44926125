// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "config/settings.h"
#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

// The model or the shape of the settings, whose names are resolved (setup/model_names.h).
Result<std::filesystem::path> chosen_model(const Settings& settings);

// Engine options with everything filled in that depends on which models there are: the draft of the built-in
// target where a method needs a draft model and none is named, and a head beside the target where a method
// needs one.
Result<EngineOptions> complete_engine_options(const Settings& settings);

// As above for commands that compare with and without speculation: where none was asked for, they use the
// built-in draft on the built-in target. On any other, `bench` uses Auto, as a server does, and the rest
// NGram, which always drafts.
Result<EngineOptions> complete_speculative_options(const Settings& settings);

// As above for a server: where no speculation was asked for, it uses Auto, which drafts only as much as pays.
Result<EngineOptions> complete_serving_options(const Settings& settings);

// Opens the model that `settings` names, or the default one.
Result<std::unique_ptr<Engine>> open_engine(const Settings& settings);

}  // namespace outrider
