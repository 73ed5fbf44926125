// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/json_schema/json_text.h"
#include "grammar/json_schema/number_ranges.h"

namespace outrider {
namespace {

constexpr int64_t kLargest = 999'999'999'999'999'999;  // JsonText::kDigits digits
constexpr int64_t kMaxListed = 4096;
constexpr int64_t kMaxFactor = 100;  // a rule for each remainder and number of digits
constexpr GrammarExpr kNothing = -1;

// Digits that make a multiple of a small factor, followed from remainder to remainder.
class MultipleBuilder {
 public:
  MultipleBuilder(GrammarBuilder& builder, int64_t factor) : builder_(builder), factor_(factor) {}

  // Multiples from `low` to `high`, which is not smaller, without leading zeros. Precondition: low > 0.
  GrammarExpr between(const std::string& low, const std::string& high) {
    std::vector<GrammarExpr> choices;
    for (size_t size = low.size(); size <= high.size(); ++size) {
      const std::string first = size == low.size() ? low : "1" + std::string(size - 1, '0');
      const std::string last = size == high.size() ? high : std::string(size, '9');
      const GrammarExpr found = first <= last ? same_size(first, last, 0) : kNothing;
      if (found != kNothing) choices.push_back(found);
    }
    return builder_.choice(std::move(choices));
  }

 private:
  // The digits after some with this remainder, from `low` to `high`, which have the same length.
  GrammarExpr same_size(std::string_view low, std::string_view high, int64_t remainder) {
    if (low.find_first_not_of('0') == std::string_view::npos &&
        high.find_first_not_of('9') == std::string_view::npos) {
      return any(low.size(), remainder);
    }
    const std::string zeros(low.size() - 1, '0'), nines(low.size() - 1, '9');
    std::vector<GrammarExpr> choices;
    for (char digit = low[0]; digit <= high[0]; ++digit) {
      const std::string_view from = digit == low[0] ? low.substr(1) : std::string_view(zeros);
      const std::string_view to = digit == high[0] ? high.substr(1) : std::string_view(nines);
      add(digit, same_size(from, to, after(remainder, digit)), choices);
    }
    return choices.empty() ? kNothing : builder_.choice(std::move(choices));
  }

  // Any `count` digits.
  GrammarExpr any(size_t count, int64_t remainder) {
    if (count == 0) return remainder == 0 ? builder_.empty() : kNothing;
    std::vector<GrammarExpr>& known = known_[count - 1];
    if (known.empty()) known.assign(static_cast<size_t>(factor_), kUnknown);
    if (known[static_cast<size_t>(remainder)] != kUnknown) return known[static_cast<size_t>(remainder)];
    std::vector<GrammarExpr> choices;
    for (char digit = '0'; digit <= '9'; ++digit)
      add(digit, any(count - 1, after(remainder, digit)), choices);
    const GrammarExpr found =
        choices.empty() ? kNothing : builder_.rule("digits", builder_.choice(std::move(choices)));
    return known[static_cast<size_t>(remainder)] = found;
  }

  void add(char digit, GrammarExpr rest, std::vector<GrammarExpr>& choices) {
    if (rest != kNothing)
      choices.push_back(builder_.sequence({builder_.literal(std::string_view(&digit, 1)), rest}));
  }
  int64_t after(int64_t remainder, char digit) const { return (10 * remainder + (digit - '0')) % factor_; }

  static constexpr GrammarExpr kUnknown = -2;
  GrammarBuilder& builder_;
  int64_t factor_;
  std::vector<GrammarExpr> known_[JsonText::kDigits];  // [digits - 1][remainder]
};

// Multiples from `low` to `high`, both at least 0.
GrammarExpr natural_multiples(GrammarBuilder& builder, int64_t factor, int64_t low, int64_t high) {
  const int64_t first = (low + factor - 1) / factor * factor;
  if (first > high) return builder.nothing();
  int64_t small = factor;
  std::string zeros;
  for (; small % 10 == 0; small /= 10) zeros += '0';
  const int64_t count = (high - first) / factor + 1;
  if (count <= kMaxListed || small > kMaxFactor) {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < std::min(count, kMaxListed); ++i)
      texts.push_back(std::to_string(first + i * factor));
    return builder.one_of(std::move(texts));
  }
  const int64_t scale = factor / small;
  const GrammarExpr digits = MultipleBuilder(builder, small)
                                 .between(std::to_string(std::max<int64_t>(1, (low + scale - 1) / scale)),
                                          std::to_string(high / scale));
  const GrammarExpr positive = builder.sequence({digits, builder.literal(zeros)});
  return low > 0 ? positive : builder.choice({builder.literal("0"), positive});
}

// The value of an integer.
int64_t value_of(const Decimal& decimal) {
  const int64_t magnitude = std::stoll(decimal.whole);
  return decimal.is_negative ? -magnitude : magnitude;
}

}  // namespace

GrammarExpr multiple_range(GrammarBuilder& builder, int64_t factor, const NumberBounds& bounds) {
  const NumberBounds whole = integral_bounds(bounds);
  const int64_t low = whole.low ? std::max(value_of(whole.low->value), -kLargest) : -kLargest;
  const int64_t high = whole.high ? std::min(value_of(whole.high->value), kLargest) : kLargest;
  std::vector<GrammarExpr> choices;
  if (high >= 0) choices.push_back(natural_multiples(builder, factor, std::max<int64_t>(low, 0), high));
  if (low < 0) {
    const GrammarExpr magnitude = natural_multiples(builder, factor, std::max<int64_t>(-high, 1), -low);
    choices.push_back(builder.sequence({builder.literal("-"), magnitude}));
  }
  return builder.choice(std::move(choices));
}

}  // namespace outrider
