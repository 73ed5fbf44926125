// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace outrider {

// The control tokens of a model that was trained to write the text between two others.
struct MiddleMarks {
  TokenId prefix = 0, suffix = 0, middle = 0;
};

// nullopt: the model was not trained so.
std::optional<MiddleMarks> find_middle_marks(const Tokenizer& tokenizer);

// The prompt for the text between `before` and `after`.
std::vector<TokenId> middle_prompt(const Tokenizer& tokenizer, const MiddleMarks& marks,
                                   std::string_view before, std::string_view after);

}  // namespace outrider
