// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "grammar/grammar.h"
#include "grammar/grammar_builder.h"
#include "grammar/text_scanner.h"
#include "outrider/result.h"

namespace outrider {

// How often a part is repeated.
struct Quantifier {
  int32_t min = 0;
  int32_t max = GrammarBuilder::kUnbounded;
};

// Reads "?", "*", "+", "{m}", "{m,}" or "{m,n}" at the scanner's position; nullopt if there is none.
// skip_space() is called where spaces are allowed within braces. The parser makes the errors:
// malformed(expected text), error(problem).
template <typename SkipSpace, typename Malformed, typename MakeError>
Result<std::optional<Quantifier>> take_quantifier(TextScanner& in, SkipSpace&& skip_space,
                                                  Malformed&& malformed, MakeError&& error) {
  Quantifier found;
  if (in.take("*")) return std::optional(found);
  if (in.take("?")) return std::optional(Quantifier{0, 1});
  if (in.take("+")) return std::optional(Quantifier{1, GrammarBuilder::kUnbounded});
  if (!in.take("{")) return std::optional<Quantifier>();
  skip_space();
  const auto low = in.number(GrammarLimits::kRepetition);
  if (!low) return malformed("a number of repetitions");
  found.min = found.max = *low;
  skip_space();
  if (in.take(",")) {
    skip_space();
    found.max = in.number(GrammarLimits::kRepetition).value_or(GrammarBuilder::kUnbounded);
    skip_space();
  }
  if (!in.take("}")) return malformed("\"}\" after a number of repetitions");
  if (found.min > GrammarLimits::kRepetition || found.max > GrammarLimits::kRepetition) {
    return error("at most " + std::to_string(GrammarLimits::kRepetition) + " repetitions can be asked for");
  }
  if (found.max != GrammarBuilder::kUnbounded && found.min > found.max) return error("{m,n} needs m <= n");
  return std::optional(found);
}

}  // namespace outrider
