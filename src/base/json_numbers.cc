// SPDX-License-Identifier: Apache-2.0
#include "base/json_numbers.h"

#include <simdjson.h>

namespace outrider {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr size_t kAlwaysHeld = 18;  // characters of an integer that certainly fits 64 bits

size_t digit_count(std::string_view text) {
  const size_t end = text.find_first_not_of(kDigits);
  return end == std::string_view::npos ? text.size() : end;
}

struct NumberToken {
  size_t length = 0;  // characters; 0: no number of JSON's grammar begins here
  bool is_integer = true;
};

NumberToken number_at_start(std::string_view text) {
  NumberToken number;
  size_t at = text.starts_with('-') ? 1 : 0;
  const size_t whole = digit_count(text.substr(at));
  if (whole == 0 || (whole > 1 && text[at] == '0')) return number;
  at += whole;
  if (text.substr(at).starts_with('.')) {
    const size_t fraction = digit_count(text.substr(at + 1));
    if (fraction == 0) return number;
    at += 1 + fraction;
    number.is_integer = false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const bool has_sign = at + 1 < text.size() && (text[at + 1] == '+' || text[at + 1] == '-');
    const size_t mark = has_sign ? 2 : 1;
    const size_t exponent = digit_count(text.substr(at + mark));
    if (exponent == 0) return number;
    at += mark + exponent;
    number.is_integer = false;
  }
  number.length = at;
  return number;
}

// A JSON string from its opening quotation mark to its closing one, or to the end of a text that lacks it.
std::string_view string_at_start(std::string_view text) {
  size_t at = 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return text.substr(0, at + 1);
}

bool holds(simdjson::dom::parser& parser, const std::string& number) {
  return parser.parse(number).error() == simdjson::SUCCESS;
}

std::string holdable(simdjson::dom::parser& parser, std::string_view digits, bool is_integer) {
  std::string number(digits);
  if (holds(parser, number)) return number;
  if (is_integer && holds(parser, number += "e0")) return number;
  return digits.starts_with('-') ? "-1e308" : "1e308";  // not longer than any number that it replaces
}

}  // namespace

std::string with_holdable_numbers(std::string_view json) {
  simdjson::dom::parser parser;
  std::string result;
  while (!json.empty()) {
    size_t taken = 1;
    if (json.front() == '"') {
      taken = string_at_start(json).size();
    } else if (const NumberToken number = number_at_start(json); number.length > 0) {
      taken = number.length;
      if (!number.is_integer || taken > kAlwaysHeld) {
        result += holdable(parser, json.substr(0, taken), number.is_integer);
        json.remove_prefix(taken);
        continue;
      }
    }
    result += json.substr(0, taken);
    json.remove_prefix(taken);
  }
  return result;
}

}  // namespace outrider
