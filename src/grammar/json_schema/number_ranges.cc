// SPDX-License-Identifier: Apache-2.0
#include "grammar/json_schema/number_ranges.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "grammar/json_schema/json_text.h"

namespace outrider {
namespace {

constexpr int32_t kDigits = JsonText::kDigits;
using Bound = NumberBounds::Bound;

bool is_less(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Arithmetic on a natural number given as digits.
std::string plus_one(std::string digits) {
  for (size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '9') {
      ++digits[i];
      return digits;
    }
    digits[i] = '0';
  }
  return "1" + digits;
}

// Precondition: not 0.
std::string minus_one(std::string digits) {
  for (size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '0') {
      --digits[i];
      break;
    }
    digits[i] = '9';
  }
  return digits.size() > 1 && digits[0] == '0' ? digits.substr(1) : digits;
}

class RangeBuilder {
 public:
  explicit RangeBuilder(GrammarBuilder& builder) : builder_(builder) {}

  // Natural numbers from `low` to `high` inclusive.
  GrammarExpr naturals(const std::string& low, const std::string& high) {
    std::vector<GrammarExpr> choices;
    for (size_t size = low.size(); size <= high.size(); ++size) {
      const std::string first = size == low.size() ? low : "1" + std::string(size - 1, '0');
      const std::string last = size == high.size() ? high : std::string(size, '9');
      if (first <= last) choices.push_back(same_size(first, last));
    }
    return builder_.choice(std::move(choices));
  }

  // Numbers >= 0 within the bounds, with or without a fraction. Precondition: high >= 0.
  GrammarExpr decimals(const Bound& low, const std::optional<Bound>& high) {
    const std::string& from = low.value.whole;
    std::vector<GrammarExpr> choices;
    if (high && high->value.whole == from) {
      return builder_.sequence({builder_.literal(from), fraction_between(low, *high)});
    }
    choices.push_back(builder_.sequence({builder_.literal(from), fraction_above(low)}));
    const std::string next = plus_one(from);
    const std::string last = high ? (high->value.whole == "0" ? "0" : minus_one(high->value.whole))
                                  : std::string(std::max<size_t>(kDigits, next.size()), '9');
    if (!is_less(last, next)) choices.push_back(builder_.sequence({naturals(next, last), any_fraction()}));
    if (high && is_less(from, high->value.whole)) {
      choices.push_back(builder_.sequence({builder_.literal(high->value.whole), fraction_below(*high)}));
    }
    return builder_.choice(std::move(choices));
  }

 private:
  GrammarExpr digit(char first = '0', char last = '9') {
    if (first > last) return builder_.nothing();
    return builder_.characters({{static_cast<uint32_t>(first), static_cast<uint32_t>(last)}});
  }
  GrammarExpr digits(int32_t min, int32_t max) { return builder_.repeat(digit(), min, max); }
  GrammarExpr zeros() { return builder_.repeat(digit('0', '0'), 0, kDigits); }
  GrammarExpr some_digit_not_zero() {
    return builder_.sequence({zeros(), digit('1', '9'), digits(0, kDigits)});
  }
  GrammarExpr any_fraction() {
    return builder_.optional(builder_.sequence({builder_.literal("."), digits(1, kDigits)}));
  }

  // Digit strings from `low` to `high`, which have the same length.
  GrammarExpr same_size(std::string_view low, std::string_view high) {
    if (low.empty()) return builder_.empty();
    const auto rest = static_cast<int32_t>(low.size()) - 1;
    if (low.find_first_not_of('0') == std::string_view::npos &&
        high.find_first_not_of('9') == std::string_view::npos) {
      return digits(rest + 1, rest + 1);
    }
    if (low[0] == high[0]) {
      return builder_.sequence({digit(low[0], low[0]), same_size(low.substr(1), high.substr(1))});
    }
    const std::string nines(rest, '9');
    const std::string none(rest, '0');
    return builder_.choice(
        {builder_.sequence({digit(low[0], low[0]), same_size(low.substr(1), nines)}),
         builder_.sequence(
             {digit(static_cast<char>(low[0] + 1), static_cast<char>(high[0] - 1)), digits(rest, rest)}),
         builder_.sequence({digit(high[0], high[0]), same_size(none, high.substr(1))})});
  }

  // The part after the integer: fractions >= the bound's, or > it if the bound is exclusive.
  GrammarExpr fraction_above(const Bound& low) {
    if (low.value.fraction.empty() && !low.is_exclusive) return any_fraction();
    return builder_.sequence({builder_.literal("."), digits_above(low.value.fraction, low.is_exclusive)});
  }
  GrammarExpr digits_above(std::string_view bound, bool is_exclusive) {
    if (bound.empty()) return is_exclusive ? some_digit_not_zero() : digits(0, kDigits);
    return builder_.choice(
        {builder_.sequence({digit(static_cast<char>(bound[0] + 1), '9'), digits(0, kDigits)}),
         builder_.sequence({digit(bound[0], bound[0]), digits_above(bound.substr(1), is_exclusive)})});
  }

  GrammarExpr fraction_below(const Bound& high) {
    const std::string& bound = high.value.fraction;
    if (bound.empty()) {
      if (high.is_exclusive) return builder_.nothing();
      return builder_.optional(builder_.sequence({builder_.literal("."), digit('0', '0'), zeros()}));
    }
    return builder_.optional(
        builder_.sequence({builder_.literal("."), digits_below(bound, high.is_exclusive)}));
  }
  // Precondition: at least one digit.
  GrammarExpr digits_below(std::string_view bound, bool is_exclusive) {
    return builder_.choice(
        {builder_.sequence({digit('0', static_cast<char>(bound[0] - 1)), digits(0, kDigits)}),
         builder_.sequence({digit(bound[0], bound[0]), rest_below(bound.substr(1), is_exclusive)})});
  }
  GrammarExpr rest_below(std::string_view bound, bool is_exclusive) {
    if (bound.empty()) return is_exclusive ? builder_.nothing() : zeros();
    return builder_.optional(digits_below(bound, is_exclusive));
  }

  GrammarExpr fraction_between(const Bound& low, const Bound& high) {
    const std::string& from = low.value.fraction;
    const std::string& to = high.value.fraction;
    std::vector<GrammarExpr> choices = {builder_.sequence(
        {builder_.literal("."), digits_between(from, to, low.is_exclusive, high.is_exclusive)})};
    if (from.empty() && !low.is_exclusive && (!to.empty() || !high.is_exclusive)) {
      choices.push_back(builder_.empty());
    }
    return builder_.choice(std::move(choices));
  }
  // Precondition: at least one digit.
  GrammarExpr digits_between(std::string_view low, std::string_view high, bool beyond_low, bool below_high) {
    if (low.empty() && high.empty()) {
      return beyond_low || below_high ? builder_.nothing() : builder_.sequence({digit('0', '0'), zeros()});
    }
    const char first = low.empty() ? '0' : low[0];
    const char last = high.empty() ? '0' : high[0];
    const std::string_view low_rest = low.empty() ? low : low.substr(1);
    const std::string_view high_rest = high.empty() ? high : high.substr(1);
    if (first > last) return builder_.nothing();
    if (first == last) {
      std::vector<GrammarExpr> rest = {digits_between(low_rest, high_rest, beyond_low, below_high)};
      if (low_rest.empty() && !beyond_low && (!high_rest.empty() || !below_high)) {
        rest.push_back(builder_.empty());
      }
      return builder_.sequence({digit(first, first), builder_.choice(std::move(rest))});
    }
    return builder_.choice(
        {builder_.sequence({digit(first, first), digits_above(low_rest, beyond_low)}),
         builder_.sequence(
             {digit(static_cast<char>(first + 1), static_cast<char>(last - 1)), digits(0, kDigits)}),
         builder_.sequence({digit(last, last), rest_below(high_rest, below_high)})});
  }

  GrammarBuilder& builder_;
};

Bound negated(Bound bound) {
  bound.value.is_negative = !bound.value.is_negative;
  return bound;
}

// The bound as an inclusive integer, rounded towards the inside of the range.
std::optional<Bound> integral(const std::optional<Bound>& bound, bool is_low) {
  if (!bound) return std::nullopt;
  Bound result = *bound;
  const bool is_whole = result.value.fraction.empty();
  result.value.fraction.clear();
  result.is_exclusive = false;
  if (is_whole && !bound->is_exclusive) return result;
  // Dropping the fraction rounds towards zero; if the inside is away from zero, one more is needed.
  const bool is_away = result.value.is_negative != is_low;
  if (!is_whole && !is_away) return result;
  if (is_away) {
    result.value.whole = plus_one(result.value.whole);
  } else if (result.value.whole == "0") {
    result.value.whole = "1";
    result.value.is_negative = !result.value.is_negative;
  } else {
    result.value.whole = minus_one(result.value.whole);
  }
  return result;
}

GrammarExpr signed_range(GrammarBuilder& builder, const NumberBounds& bounds,
                         GrammarExpr (*natural)(RangeBuilder&, const Bound&, const std::optional<Bound>&)) {
  RangeBuilder range(builder);
  const Decimal zero;
  if (bounds.low && bounds.high && bounds.high->value < bounds.low->value) return builder.nothing();
  std::vector<GrammarExpr> choices;
  const bool has_positive = !bounds.high || !(bounds.high->value < zero);
  const bool has_negative = !bounds.low || bounds.low->value < zero;
  if (has_positive) {
    const bool is_above = bounds.low && !(bounds.low->value < zero);
    choices.push_back(natural(range, is_above ? *bounds.low : Bound{}, bounds.high));
  }
  if (has_negative) {
    const bool is_below = bounds.high && !(zero < bounds.high->value);
    std::optional<Bound> largest;
    if (bounds.low) largest = negated(*bounds.low);
    const Bound smallest = is_below ? negated(*bounds.high) : Bound{};
    choices.push_back(builder.sequence({builder.literal("-"), natural(range, smallest, largest)}));
  }
  return builder.choice(std::move(choices));
}

}  // namespace

bool operator<(const Decimal& a, const Decimal& b) {
  const bool a_negative = a.is_negative && !a.is_zero();
  const bool b_negative = b.is_negative && !b.is_zero();
  if (a_negative != b_negative) return a_negative;
  const Decimal& small = a_negative ? b : a;
  const Decimal& large = a_negative ? a : b;
  if (small.whole != large.whole) return is_less(small.whole, large.whole);
  return small.fraction < large.fraction;
}

std::optional<Decimal> parse_decimal(std::string_view number) {
  Decimal decimal;
  if (number.starts_with('-')) {
    decimal.is_negative = true;
    number.remove_prefix(1);
  }
  const size_t mark = number.find_first_of("eE");
  int exponent = 0;
  if (mark != std::string_view::npos) {
    const std::string_view digits = number.substr(mark + 1);
    for (const char c : digits) {
      if (c >= '0' && c <= '9') exponent = std::min(1000, exponent * 10 + (c - '0'));
    }
    if (digits.starts_with('-')) exponent = -exponent;
    number = number.substr(0, mark);
  }
  const size_t point = number.find('.');
  std::string whole(number.substr(0, point));
  std::string fraction(point == std::string_view::npos ? "" : number.substr(point + 1));
  if (exponent > 0) {
    if (fraction.size() < static_cast<size_t>(exponent)) fraction.resize(exponent, '0');
    whole += fraction.substr(0, exponent);
    fraction.erase(0, exponent);
  } else if (exponent < 0) {
    if (whole.size() < static_cast<size_t>(-exponent)) whole.insert(0, -exponent - whole.size(), '0');
    fraction.insert(0, whole.substr(whole.size() + exponent));
    whole.resize(whole.size() + exponent);
  }
  whole.erase(0, whole.find_first_not_of('0'));
  fraction.resize(fraction.find_last_not_of('0') + 1);
  if (whole.size() > kDigits || fraction.size() > kDigits) return std::nullopt;
  decimal.whole = whole.empty() ? "0" : whole;
  decimal.fraction = fraction;
  return decimal;
}

NumberBounds integral_bounds(const NumberBounds& bounds) {
  return {integral(bounds.low, true), integral(bounds.high, false)};
}

GrammarExpr integer_range(GrammarBuilder& builder, const NumberBounds& bounds) {
  const NumberBounds whole = integral_bounds(bounds);
  return signed_range(
      builder, whole, [](RangeBuilder& range, const Bound& low, const std::optional<Bound>& high) {
        const size_t size = std::max<size_t>(kDigits, low.value.whole.size());
        return range.naturals(low.value.whole, high ? high->value.whole : std::string(size, '9'));
      });
}

GrammarExpr number_range(GrammarBuilder& builder, const NumberBounds& bounds) {
  return signed_range(builder, bounds,
                      [](RangeBuilder& range, const Bound& low, const std::optional<Bound>& high) {
                        return range.decimals(low, high);
                      });
}

}  // namespace outrider
