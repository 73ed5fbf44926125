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
// target where a method needs a draft model and none is named, a head beside the target where a method needs
// one, and for Auto the drafter that it finds (setup/own_drafter.h). Where no speculation was asked for,
// there is none.
Result<EngineOptions> complete_engine_options(const Settings& settings);

// As above for all that decodes text: where no speculation was asked for, Auto drafts as much as pays.
Result<EngineOptions> complete_decoding_options(const Settings& settings);

// As above for a server, which measures all costs before it is ready.
Result<EngineOptions> complete_serving_options(const Settings& settings);

// As above for `bench`, whose figures should not depend on how many costs earlier starts have measured.
// Random models of a shape have no text that Auto could draft from: they use complete_drafting_options().
Result<EngineOptions> complete_bench_options(const Settings& settings);

// As above for commands that examine drafts: where no speculation was asked for, the draft of the shape or of
// the built-in target, else NGram.
Result<EngineOptions> complete_drafting_options(const Settings& settings);

// Opens the model that `settings` names, or the default one, to decode text.
Result<std::unique_ptr<Engine>> open_engine(const Settings& settings);

}  // namespace outrider
