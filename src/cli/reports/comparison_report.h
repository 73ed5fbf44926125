// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands/comparison.h"

namespace outrider {

// One table: drafters down, what they bring across.
std::string comparison_text(const Comparison& comparison);

// One object; every contender with its figures over all prompts and by category.
nlohmann::ordered_json comparison_json(const Comparison& comparison);

// The same as a page that needs nothing else.
std::string comparison_page(const nlohmann::ordered_json& comparison);

}  // namespace outrider
