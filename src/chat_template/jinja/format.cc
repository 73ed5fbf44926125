// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/format.h"

#include <cstdio>

#include "chat_template/jinja/print.h"
#include "chat_template/jinja/text.h"

namespace outrider::jinja {

namespace {

constexpr int kMaxFieldWidth = 200;

struct Conversion {
  std::string flags;
  int width = 0;
  int precision = -1;
  char type = 0;
};

Result<int> parse_field_number(std::string_view format, size_t& at) {
  int number = 0;
  for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at) {
    number = number * 10 + (format[at] - '0');
    if (number > kMaxFieldWidth) return input_error("a % conversion is wider than 200 characters");
  }
  return number;
}

// `at` is the place after the percent sign and is moved to the place after the conversion.
Result<Conversion> parse_conversion(std::string_view format, size_t& at) {
  Conversion conversion;
  for (; at < format.size() && std::string_view("-+ #0").find(format[at]) != std::string_view::npos; ++at) {
    if (conversion.flags.find(format[at]) == std::string::npos) conversion.flags += format[at];
  }
  OUTRIDER_TRY(conversion.width, parse_field_number(format, at));
  if (at < format.size() && format[at] == '.') {
    ++at;
    OUTRIDER_TRY(conversion.precision, parse_field_number(format, at));
  }
  if (at >= format.size()) return input_error("a % conversion is incomplete");
  conversion.type = format[at++];
  return conversion;
}

std::string pad(const Conversion& conversion, std::string text) {
  const int64_t missing = conversion.width - count_characters(text);
  if (missing <= 0) return text;
  const std::string spaces(static_cast<size_t>(missing), ' ');
  return conversion.flags.find('-') != std::string::npos ? text + spaces : spaces + text;
}

std::string first_characters(const std::string& text, int count) {
  std::string out;
  for (std::string_view character : split_characters(text)) {
    if (count-- == 0) break;
    out += character;
  }
  return out;
}

template <typename Number>
std::string print_number(const Conversion& conversion, const char* length, Number number) {
  std::string format = "%" + conversion.flags + std::to_string(conversion.width);
  if (conversion.width == 0) format.pop_back();
  if (conversion.precision >= 0) format += "." + std::to_string(conversion.precision);
  format += length;
  format += conversion.type;
  char buffer[800];  // holds the 309 digits of the greatest double and kMaxFieldWidth of precision
  const int size = std::snprintf(buffer, sizeof(buffer), format.c_str(), number);
  return std::string(buffer, static_cast<size_t>(size));
}

Result<std::string> convert(Runtime& runtime, Conversion conversion, const Value& value) {
  if (conversion.type == 's') {
    OUTRIDER_TRY(std::string text, to_text(runtime, value));
    return pad(conversion, conversion.precision >= 0 ? first_characters(text, conversion.precision) : text);
  }
  if (std::string_view("dixXo").find(conversion.type) != std::string_view::npos) {
    const bool is_decimal = conversion.type == 'd' || conversion.type == 'i';
    if (!value.is_integral() && !(is_decimal && value.is(Kind::kFloat))) {
      return input_error("a %" + std::string(1, conversion.type) + " conversion needs an integer, found " +
                         std::string(value.type_name()));
    }
    if (value.is(Kind::kFloat) && !(value.number() > -0x1p63 && value.number() < 0x1p63)) {
      return input_error("a number does not fit in 64 bits");
    }
    const long long number = value.is_integral() ? value.integer() : static_cast<int64_t>(value.number());
    if (!is_decimal && number < 0)
      return input_error("hexadecimal and octal of negative numbers are not supported");
    return print_number(conversion, "ll", number);
  }
  if (std::string_view("fFeEgG").find(conversion.type) != std::string_view::npos) {
    if (!value.is_number()) {
      return input_error("a %" + std::string(1, conversion.type) + " conversion needs a number, found " +
                         std::string(value.type_name()));
    }
    return print_number(conversion, "", value.number());
  }
  return input_error("the % conversion '" + std::string(1, conversion.type) + "' is not supported");
}

}  // namespace

Result<Value> format_percent(Runtime& runtime, std::string_view format, const std::vector<Value>& values) {
  std::string out;
  size_t used = 0;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    ++at;
    OUTRIDER_TRY(const Conversion conversion, parse_conversion(format, at));
    if (conversion.type == '%') {
      out += '%';
      continue;
    }
    if (used == values.size()) return input_error("a % format has more conversions than values");
    OUTRIDER_TRY(const std::string text, convert(runtime, conversion, values[used++]));
    OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(text.size()));
    out += text;
  }
  if (used < values.size()) return input_error("a % format has fewer conversions than values");
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(out.size()));
  return Value(std::move(out));
}

}  // namespace outrider::jinja
