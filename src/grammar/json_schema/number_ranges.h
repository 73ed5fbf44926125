// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "grammar/grammar_builder.h"

namespace outrider {

// A decimal number without exponent: digits without leading zeros ("0") and without trailing ones ("").
struct Decimal {
  bool is_negative = false;
  std::string whole = "0";
  std::string fraction;
  bool is_zero() const { return whole == "0" && fraction.empty(); }
};

// nullopt: more than 18 digits before or after the decimal point. Precondition: `text` is a JSON number.
std::optional<Decimal> parse_decimal(std::string_view number);
bool operator<(const Decimal& a, const Decimal& b);

struct NumberBounds {
  struct Bound {
    Decimal value;
    bool is_exclusive = false;
  };
  std::optional<Bound> low, high;
};

// The bounds as inclusive integers, rounded towards the inside.
NumberBounds integral_bounds(const NumberBounds& bounds);

// Integers within the bounds; a side without bound is limited to 18 digits.
GrammarExpr integer_range(GrammarBuilder& builder, const NumberBounds& bounds);
// Multiples of `factor`, which is positive, within the bounds. Where these are many, and the factor without
// its zeros is above 100, they are only the thousands nearest to zero.
GrammarExpr multiple_range(GrammarBuilder& builder, int64_t factor, const NumberBounds& bounds);
// Numbers without exponent within the bounds, with up to 18 digits before and after the decimal point.
GrammarExpr number_range(GrammarBuilder& builder, const NumberBounds& bounds);

}  // namespace outrider
