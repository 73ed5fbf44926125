// SPDX-License-Identifier: Apache-2.0
// Conversion of option text to typed values: one set of rules for command line, environment and YAML. Errors
// say what was expected and what was found; the caller puts the option's name and place in front.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/white_space.h"
#include "outrider/result.h"

namespace outrider {

Result<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max);
Result<double> parse_number(std::string_view text, double min, double max);
// true, yes, on, 1 and their opposites, in any case.
Result<bool> parse_flag(std::string_view text);
// The choice that `text` is; letter case, '-' and '_' do not matter.
Result<std::string_view> parse_choice(std::string_view text, std::span<const std::string_view> choices);

std::vector<std::string_view> split(std::string_view text, char separator);
// The parts of "a,b" or "[a, b]", without the white space around each.
std::vector<std::string_view> list_parts(std::string_view text);
// At commas outside brackets.
std::vector<std::string_view> split_outside_brackets(std::string_view text);

}  // namespace outrider
