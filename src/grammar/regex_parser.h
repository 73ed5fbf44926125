// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "grammar/grammar_builder.h"

namespace outrider {

struct RegexOptions {
  // What stands for one character out of a set; by default the character itself.
  std::function<GrammarExpr(const CodePointSet&)> character;
  // The pattern may match anywhere, but for ^ and $; otherwise it must match the whole text.
  bool is_search = false;
};

Result<GrammarExpr> regex_expression(GrammarBuilder& builder, std::string_view pattern,
                                     const RegexOptions& options);

}  // namespace outrider
