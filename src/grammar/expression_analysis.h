// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "grammar/grammar_builder.h"

namespace outrider {

// By expression. Linear in the size of all expressions.
struct ExpressionFacts {
  std::vector<bool> is_productive;  // some text fits
  std::vector<bool> is_nullable;    // the empty text fits
};

// Precondition: every rule is defined.
ExpressionFacts analyse_expressions(const GrammarBuilder& builder);

}  // namespace outrider
