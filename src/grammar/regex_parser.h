// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "grammar/grammar_builder.h"

namespace outrider {

struct RegexOptions {
  // Makes the expression for one character of a set; by default the character itself.
  std::function<GrammarExpr(const CodePointSet&)> character;
  // Whether the pattern may match anywhere in the text, restricted by ^ and $; else it must match the whole
  // text.
  bool is_search = false;
};

// The texts that the regular expression matches. Errors name the position.
Result<GrammarExpr> regex_expression(GrammarBuilder& builder, std::string_view pattern,
                                     const RegexOptions& options);

}  // namespace outrider
