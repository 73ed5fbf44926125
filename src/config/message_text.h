// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/quote.h"  // IWYU pragma: export

namespace outrider {

// `text` with every line break turned into a space, so that a message from anywhere stays one line.
std::string single_line(std::string_view text);

// "; did you mean 'CANDIDATE'?" for the candidate that `name` was probably meant to be: at most two letters
// are wrong, or one name begins with the other. Empty: none is that near. '-' and '_' and letter case count
// as equal.
std::string suggestion(std::string_view name, std::span<const std::string_view> candidates);

// Lower case without '-' and '_': how method names are compared.
std::string folded_name(std::string_view name);

// "DraftTarget" as "draft_target": how methods are written on the command line and in results.
std::string snake_name(std::string_view name);

// "a, b, c".
std::string joined(std::span<const std::string_view> names);

}  // namespace outrider
