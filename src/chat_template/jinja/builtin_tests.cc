// SPDX-License-Identifier: Apache-2.0
// The tests that `value is test` can name.
#include "chat_template/jinja/builtins.h"
#include "chat_template/jinja/operators.h"
#include "chat_template/jinja/text.h"

namespace outrider::jinja {

namespace {

template <Kind... kinds>
Result<Value> has_kind(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  return Value((subject.is(kinds) || ...));
}

template <Kind kind>
Result<Value> has_other_kind(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  return Value(!subject.is(kind));
}

template <bool expected>
Result<Value> is_constant(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  return Value(subject.is(Kind::kBool) && subject.truthy() == expected);
}

Result<Value> is_divisible_by(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"num"}, 1));
  OUTRIDER_TRY(const Value rest,
               apply_arithmetic(runtime, ArithmeticOperator::kModulo, subject, parameters[0]));
  return Value(!rest.truthy());
}

template <int64_t rest>
Result<Value> has_parity(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  OUTRIDER_TRY(const Value found,
               apply_arithmetic(runtime, ArithmeticOperator::kModulo, subject, Value(int64_t{2})));
  return Value(found.is_number() && found.number() == static_cast<double>(rest));
}

template <bool expected>
Result<Value> is_equal(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"other"}, 1));
  OUTRIDER_TRY(const bool same, equal(runtime, subject, parameters[0]));
  return Value(same == expected);
}

// Computes subject < other, with the operands exchanged and the result negated as asked.
template <bool exchange, bool negate>
Result<Value> compares(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"other"}, 1));
  const Value& left = exchange ? parameters[0] : subject;
  const Value& right = exchange ? subject : parameters[0];
  OUTRIDER_TRY(const bool is_less, less(runtime, left, right));
  return Value(is_less != negate);
}

Result<Value> is_in(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"seq"}, 1));
  OUTRIDER_TRY(const bool found, contains(runtime, parameters[0], subject));
  return Value(found);
}

Result<Value> is_same(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"other"}, 1));
  return Value(subject.same_object(parameters[0]));
}

// str.isupper() and str.islower(): true with at least one letter of this case and none of the other.
template <bool upper>
Result<Value> has_case(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  if (!subject.is(Kind::kString)) return Value(false);
  bool found = false;
  for (std::string_view character : split_characters(subject.string())) {
    const int32_t point = code_point(character);
    if (upper ? is_lower(point) : is_upper(point)) return Value(false);
    found |= upper ? is_upper(point) : is_lower(point);
  }
  return Value(found);
}

template <const Builtin* (*find)(std::string_view)>
Result<Value> is_name_of(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  return Value(subject.is(Kind::kString) && find(subject.string()) != nullptr);
}

constexpr Builtin kTests[] = {
    {"defined", has_other_kind<Kind::kUndefined>},
    {"undefined", has_kind<Kind::kUndefined>},
    {"none", has_kind<Kind::kNone>},
    {"boolean", has_kind<Kind::kBool>},
    {"integer", has_kind<Kind::kInteger>},
    {"float", has_kind<Kind::kFloat>},
    {"number", has_kind<Kind::kBool, Kind::kInteger, Kind::kFloat>},
    {"string", has_kind<Kind::kString>},
    {"mapping", has_kind<Kind::kDict>},
    {"sequence", has_kind<Kind::kString, Kind::kList, Kind::kDict, Kind::kUndefined>},
    {"iterable", has_kind<Kind::kString, Kind::kList, Kind::kDict, Kind::kUndefined, Kind::kLoop>},
    {"callable", has_kind<Kind::kFunction, Kind::kMacro>},
    {"true", is_constant<true>},
    {"false", is_constant<false>},
    {"divisibleby", is_divisible_by},
    {"even", has_parity<0>},
    {"odd", has_parity<1>},
    {"eq", is_equal<true>},
    {"==", is_equal<true>},
    {"equalto", is_equal<true>},
    {"ne", is_equal<false>},
    {"!=", is_equal<false>},
    {"lt", compares<false, false>},
    {"<", compares<false, false>},
    {"lessthan", compares<false, false>},
    {"gt", compares<true, false>},
    {">", compares<true, false>},
    {"greaterthan", compares<true, false>},
    {"ge", compares<false, true>},
    {">=", compares<false, true>},
    {"le", compares<true, true>},
    {"<=", compares<true, true>},
    {"in", is_in},
    {"sameas", is_same},
    {"upper", has_case<true>},
    {"lower", has_case<false>},
    {"filter", is_name_of<find_filter>},
    {"test", is_name_of<find_test>},
};

}  // namespace

const Builtin* find_test(std::string_view name) {
  for (const Builtin& test : kTests) {
    if (test.name == name) return &test;
  }
  return nullptr;
}

}  // namespace outrider::jinja
