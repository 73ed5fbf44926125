// SPDX-License-Identifier: Apache-2.0
// Filters that return text or numbers.
#include <charconv>
#include <cmath>
#include <optional>

#include "chat_template/jinja/builtins.h"
#include "chat_template/jinja/format.h"
#include "chat_template/jinja/json.h"
#include "chat_template/jinja/print.h"
#include "chat_template/jinja/text.h"

namespace outrider::jinja {

namespace {

template <std::string (*map)(std::string_view)>
Result<Value> map_text(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  OUTRIDER_TRY(const std::string text, to_text(runtime, subject));
  return Value(map(text));
}

// Unlike str.title(), only spaces, hyphens and opening brackets separate words.
std::string title(std::string_view text) {
  std::string out;
  bool starts_word = true;
  for (std::string_view character : split_characters(text)) {
    out += starts_word ? to_upper(character) : to_lower(character);
    starts_word = is_whitespace(code_point(character)) ||
                  std::string_view("-({[<").find(character) != std::string_view::npos;
  }
  return out;
}

std::string same_text(std::string_view text) { return std::string(text); }

Result<Value> trim(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"chars"}));
  OUTRIDER_TRY(const std::string text, to_text(runtime, subject));
  OUTRIDER_TRY(const std::string characters, parameters.string(0, ""));
  if (!parameters.has(0)) return Value(strip(text, StripSide::kBoth));
  return Value(strip(text, StripSide::kBoth, characters));
}

Result<Value> replace_text(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"old", "new", "count"}, 2));
  OUTRIDER_TRY(const std::string text, to_text(runtime, subject));
  OUTRIDER_TRY(const std::string from, parameters.string(0, ""));
  OUTRIDER_TRY(const std::string to, parameters.string(1, ""));
  OUTRIDER_TRY(const int64_t limit, parameters.integer(2, -1));
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(replaced_size(text, from, to)));
  return Value(replace(text, from, to, limit));
}

Result<std::string> indentation(Runtime& runtime, const Parameters& parameters, size_t index,
                                int64_t fallback) {
  if (parameters.given(index) && parameters[index].is(Kind::kString)) return parameters[index].string();
  OUTRIDER_TRY(const int64_t width, parameters.integer(index, fallback));
  const size_t count = width > 0 ? static_cast<size_t>(width) : 0;
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(count));
  return std::string(count, ' ');
}

Result<Value> indent(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"width", "first", "blank"}));
  OUTRIDER_TRY(const std::string space, indentation(runtime, parameters, 0, 4));
  OUTRIDER_TRY(const std::string text, to_text(runtime, subject));
  const std::string terminated = text + "\n";
  std::string out = parameters.flag(1, false) ? space : "";
  bool is_first = true;
  for (std::string_view line : split_lines(terminated)) {
    const bool indented = !is_first && (!line.empty() || parameters.flag(2, false));
    OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(line.size() + 1 + (indented ? space.size() : 0)));
    if (!is_first) out += '\n';
    if (indented) out += space;
    out += line;
    is_first = false;
  }
  return Value(std::move(out));
}

Result<Value> format(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  if (!arguments.named.empty()) return input_error("named values are not supported");
  OUTRIDER_TRY(const std::string text, to_text(runtime, subject));
  return format_percent(runtime, text, arguments.positional);
}

Result<Value> tojson(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters,
               Parameters::bind(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ensure_ascii = parameters.flag(0, false);
  style.sort_keys = parameters.flag(3, false);
  if (parameters.has(1)) {
    OUTRIDER_TRY(style.indent, indentation(runtime, parameters, 1, 0));
    style.item_separator = ",";
  }
  if (parameters.has(2)) {
    const Value& separators = parameters[2];
    if (!separators.is(Kind::kList) || separators.list().items.size() != 2 ||
        !separators.list().items[0].is(Kind::kString) || !separators.list().items[1].is(Kind::kString)) {
      return input_error("separators must be a pair of strings");
    }
    style.item_separator = separators.list().items[0].string();
    style.key_separator = separators.list().items[1].string();
  }
  OUTRIDER_TRY(std::string json, to_json(runtime, subject, style));
  return Value(std::move(json));
}

// Reads the whole text as a number as Python does: surrounding whitespace and single underscores are allowed.
template <typename Number, typename... Format>
std::optional<Number> parse_number(std::string_view text, Format... format) {
  text = strip(text, StripSide::kBoth);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, format...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<int64_t> truncate(double number) {
  if (!(number > -0x1p63 && number < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(number);
}

Result<Value> to_integer(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"default", "base"}));
  OUTRIDER_TRY(const int64_t base, parameters.integer(1, 10));
  if (base < 2 || base > 36) return input_error("the base must be between 2 and 36");
  if (subject.is(Kind::kUndefined)) return input_error(subject.undefined_reason());
  std::optional<int64_t> number;
  if (subject.is_integral()) {
    number = subject.integer();
  } else if (subject.is(Kind::kFloat)) {
    number = truncate(subject.number());
  } else if (subject.is(Kind::kString)) {
    number = parse_number<int64_t>(subject.string(), static_cast<int>(base));
    if (!number) {
      if (const auto decimal = parse_number<double>(subject.string())) number = truncate(*decimal);
    }
  }
  if (number) return Value(*number);
  return parameters.given(0) ? parameters[0] : Value(int64_t{0});
}

Result<Value> to_float(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"default"}));
  if (subject.is(Kind::kUndefined)) return input_error(subject.undefined_reason());
  if (subject.is_number()) return Value(subject.number());
  if (subject.is(Kind::kString)) {
    if (const auto number = parse_number<double>(subject.string())) return Value(*number);
  }
  return parameters.given(0) ? parameters[0] : Value(0.0);
}

Result<double> required_number(const Value& subject) {
  if (subject.is_number()) return subject.number();
  if (subject.is(Kind::kUndefined)) return input_error(subject.undefined_reason());
  return input_error("expected a number, found " + std::string(subject.type_name()));
}

Result<Value> round_number(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"precision", "method"}));
  OUTRIDER_TRY(const int64_t precision, parameters.integer(0, 0));
  OUTRIDER_TRY(const std::string method, parameters.string(1, "common"));
  OUTRIDER_TRY(const double number, required_number(subject));
  if (precision < -15 || precision > 15) return input_error("the precision must be between -15 and 15");
  if (method != "common" && method != "ceil" && method != "floor") {
    return input_error("the method must be common, ceil or floor");
  }
  const double scale = std::pow(10.0, static_cast<double>(std::abs(precision)));
  const double scaled = precision < 0 ? number / scale : number * scale;
  const double whole = method == "ceil"    ? std::ceil(scaled)
                       : method == "floor" ? std::floor(scaled)
                                           : std::nearbyint(scaled);
  const double rounded = precision < 0 ? whole * scale : whole / scale;
  if (subject.is_integral() && method == "common") {
    if (const auto integer = truncate(rounded)) return Value(*integer);
  }
  return Value(rounded);
}

Result<Value> absolute(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  OUTRIDER_TRY(const double number, required_number(subject));
  if (subject.is(Kind::kFloat)) return Value(std::fabs(number));
  if (subject.integer() == INT64_MIN) return input_error("an integer does not fit in 64 bits");
  return Value(std::abs(subject.integer()));
}

constexpr Builtin kTextFilters[] = {
    {"abs", absolute},
    {"capitalize", map_text<capitalize>},
    {"float", to_float},
    {"format", format},
    {"indent", indent},
    {"int", to_integer},
    {"lower", map_text<to_lower>},
    {"replace", replace_text},
    {"round", round_number},
    {"safe", map_text<same_text>},
    {"string", map_text<same_text>},
    {"title", map_text<title>},
    {"tojson", tojson},
    {"trim", trim},
    {"upper", map_text<to_upper>},
};

}  // namespace

const Builtin* find_text_filter(std::string_view name) {
  for (const Builtin& filter : kTextFilters) {
    if (filter.name == name) return &filter;
  }
  return nullptr;
}

}  // namespace outrider::jinja
