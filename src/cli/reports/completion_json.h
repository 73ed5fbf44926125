// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/timed_completion.h"
#include "outrider/engine.h"

namespace outrider {

// The object of `generate --json`.
nlohmann::ordered_json completion_json(const EngineInfo& info, const std::vector<TokenId>& prompt,
                                       const TimedCompletion& timed);

// Adds to the usage of that object what became of the request's prediction.
void add_prediction(const Completion& completion, nlohmann::ordered_json& json);

// A line of JSON. Bytes that are not UTF-8 become U+FFFD.
std::string json_line(const nlohmann::ordered_json& value);

}  // namespace outrider
