// SPDX-License-Identifier: Apache-2.0
// The road from options to an open engine is names -> opened files -> resolved options -> parts, each a plain
// value made of the one before it. This is the first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include "config/settings.h"
#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

// The files of a run by their paths, with the options for them. None has been opened.
struct Names {
  Names(EngineOptions given = {}) : options(std::move(given)) {}

  EngineOptions options;
  bool finds_drafter = false;  // a drafter that the method needs and no option names is looked for
};

// The way a command speculates where it was not asked to.
enum class Unasked : uint8_t {
  kPlain,  // not at all
  kAuto,   // with Auto, as much as pays; as kDraft where a shape has no text that Auto could draft from
  kDraft,  // with the draft of the shape or of the built-in target, else with NGram
};

// The model or the shape of the settings, in which models have been found (model_names.h).
Result<std::filesystem::path> chosen_model(const Settings& settings);

// The names in the settings, the cache directory, and the draft of a shape or of the built-in target where
// the method needs a draft model and none is named. Errors: a shape that is unknown; no draft model.
Result<Names> names_of(const Settings& settings, Unasked unasked);

}  // namespace outrider
