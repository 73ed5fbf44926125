// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/json_file.h"
#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

// Takes the temperature that a drafter's config.json names, as outrider-train wrote it, unless one was given.
inline Status take_ranking_temperature(const JsonObject& config, SpeculativeOptions& options) {
  if (options.ranking_temperature > 0.0) return {};
  OUTRIDER_TRY(const auto named, config.number("outrider_ranking_temperature"));
  if (named && *named > 0.0) options.ranking_temperature = *named;
  return {};
}

}  // namespace outrider
