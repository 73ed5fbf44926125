// SPDX-License-Identifier: Apache-2.0
// Conversion of option text to typed values: one set of rules for command line, environment and YAML. Errors
// say what was expected and what was found; the caller puts the option's name and place in front.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/white_space.h"
#include "outrider/result.h"
#include "outrider/token.h"

namespace outrider {

Result<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max);
Result<double> parse_number(std::string_view text, double min, double max);
// true, yes, on, 1 and their opposites, in any case.
Result<bool> parse_flag(std::string_view text);
// `choices` separated by '|'; the match must be exact.
Result<std::string_view> parse_choice(std::string_view text, std::string_view choices);
// "1,2,3": ids >= 0, spaces around commas allowed; at least one.
Result<std::vector<TokenId>> parse_token_ids(std::string_view text);

std::vector<std::string_view> split(std::string_view text, char separator);
// At commas outside brackets.
std::vector<std::string_view> split_outside_brackets(std::string_view text);

}  // namespace outrider
