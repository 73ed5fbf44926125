// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "grammar/grammar_builder.h"

namespace outrider {

// Properties of every expression of a builder, by its index.
struct ExpressionFacts {
  std::vector<bool> is_productive;  // at least one text fits
  std::vector<bool> is_nullable;    // the empty text fits
};

// Takes time linear in the size of all expressions. Precondition: every rule is defined.
ExpressionFacts analyse_expressions(const GrammarBuilder& builder);

}  // namespace outrider
