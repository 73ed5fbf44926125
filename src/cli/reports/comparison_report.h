// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/reports/comparison_data.h"

namespace outrider {

// A table with a row per drafter.
std::string comparison_text(const Comparison& comparison);

// An object with the figures of every contender, over all prompts and by category.
nlohmann::ordered_json comparison_json(const Comparison& comparison);

// A self-contained HTML page of that object.
std::string comparison_html(const nlohmann::ordered_json& comparison);

}  // namespace outrider
