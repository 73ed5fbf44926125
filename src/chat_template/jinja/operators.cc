// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "chat_template/jinja/format.h"

namespace outrider::jinja {

namespace {

std::string_view symbol(ArithmeticOperator op) {
  switch (op) {
    case ArithmeticOperator::kAdd:
      return "+";
    case ArithmeticOperator::kSubtract:
      return "-";
    case ArithmeticOperator::kMultiply:
      return "*";
    case ArithmeticOperator::kDivide:
      return "/";
    case ArithmeticOperator::kFloorDivide:
      return "//";
    case ArithmeticOperator::kModulo:
      return "%";
    case ArithmeticOperator::kPower:
      return "**";
  }
  return "?";
}

Error unsupported_operands(std::string_view op, const Value& left, const Value& right) {
  for (const Value* operand : {&left, &right}) {
    if (operand->is(Kind::kUndefined)) return input_error(operand->undefined_reason());
  }
  return input_error("operator " + std::string(op) + " does not work on " + std::string(left.type_name()) +
                     " and " + std::string(right.type_name()));
}

Error overflow() { return input_error("an integer does not fit in 64 bits"); }

// Python rounds the quotient down and gives the remainder the sign of the divisor.
int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

Result<Value> power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return input_error("0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  for (bool base_overflowed = false; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1 && (base_overflowed || __builtin_mul_overflow(result, base, &result)))
      return overflow();
    base_overflowed |= __builtin_mul_overflow(base, base, &base);
  }
  return Value(result);
}

Result<Value> integer_arithmetic(ArithmeticOperator op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflowed = false;
  switch (op) {
    case ArithmeticOperator::kAdd:
      overflowed = __builtin_add_overflow(a, b, &result);
      break;
    case ArithmeticOperator::kSubtract:
      overflowed = __builtin_sub_overflow(a, b, &result);
      break;
    case ArithmeticOperator::kMultiply:
      overflowed = __builtin_mul_overflow(a, b, &result);
      break;
    case ArithmeticOperator::kPower:
      return power(a, b);
    default:
      if (b == 0) return input_error("division by zero");
      if (op == ArithmeticOperator::kDivide) return Value(static_cast<double>(a) / static_cast<double>(b));
      if (op == ArithmeticOperator::kModulo) {
        if (b == -1) return Value(int64_t{0});
        return Value(a - b * floor_divide(a, b));
      }
      overflowed = a == INT64_MIN && b == -1;
      if (!overflowed) result = floor_divide(a, b);
  }
  if (overflowed) return overflow();
  return Value(result);
}

Result<Value> float_arithmetic(ArithmeticOperator op, double a, double b) {
  switch (op) {
    case ArithmeticOperator::kAdd:
      return Value(a + b);
    case ArithmeticOperator::kSubtract:
      return Value(a - b);
    case ArithmeticOperator::kMultiply:
      return Value(a * b);
    case ArithmeticOperator::kPower:
      return Value(std::pow(a, b));
    default:
      break;
  }
  if (b == 0) return input_error("division by zero");
  if (op == ArithmeticOperator::kDivide) return Value(a / b);
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (op == ArithmeticOperator::kModulo) return Value(remainder);
  return Value(std::round((a - remainder) / b));
}

Result<Value> repeat(Runtime& runtime, const Value& sequence, int64_t count) {
  const size_t times = static_cast<size_t>(std::clamp<int64_t>(count, 0, INT32_MAX));
  if (sequence.is(Kind::kString)) {
    OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(sequence.string().size() * times));
    std::string out;
    for (size_t i = 0; i < times && !sequence.string().empty(); ++i) out += sequence.string();
    return Value(std::move(out));
  }
  const List& list = sequence.list();
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(list.items.size() * sizeof(Value) * times));
  std::vector<Value> items;
  for (size_t i = 0; i < times && !list.items.empty(); ++i) {
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return list.is_tuple ? make_tuple(std::move(items)) : make_list(std::move(items));
}

Result<Value> concatenate(Runtime& runtime, const Value& left, const Value& right) {
  if (left.is(Kind::kString)) {
    OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(left.string().size() + right.string().size()));
    return Value(left.string() + right.string());
  }
  const List& head = left.list();
  const List& tail = right.list();
  if (head.is_tuple != tail.is_tuple) return unsupported_operands("+", left, right);
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes((head.items.size() + tail.items.size()) * sizeof(Value)));
  std::vector<Value> items = head.items;
  items.insert(items.end(), tail.items.begin(), tail.items.end());
  return head.is_tuple ? make_tuple(std::move(items)) : make_list(std::move(items));
}

bool is_sequence(const Value& value) { return value.is(Kind::kString) || value.is(Kind::kList); }

Result<bool> equal_lists(Runtime& runtime, const List& left, const List& right) {
  if (left.items.size() != right.items.size() || left.is_tuple != right.is_tuple) return false;
  for (size_t i = 0; i < left.items.size(); ++i) {
    OUTRIDER_TRY(const bool same, equal(runtime, left.items[i], right.items[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> equal_dicts(Runtime& runtime, const Dict& left, const Dict& right) {
  if (left.entries().size() != right.entries().size()) return false;
  for (const Dict::Entry& entry : left.entries()) {
    const Value* other = right.find(entry.key);
    if (other == nullptr) return false;
    OUTRIDER_TRY(const bool same, equal(runtime, entry.value, *other));
    if (!same) return false;
  }
  return true;
}

}  // namespace

Result<Value> apply_arithmetic(Runtime& runtime, ArithmeticOperator op, const Value& left,
                               const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral())
      return integer_arithmetic(op, left.integer(), right.integer());
    return float_arithmetic(op, left.number(), right.number());
  }
  if (op == ArithmeticOperator::kAdd && is_sequence(left) && left.kind() == right.kind()) {
    return concatenate(runtime, left, right);
  }
  if (op == ArithmeticOperator::kMultiply && is_sequence(left) && right.is_integral()) {
    return repeat(runtime, left, right.integer());
  }
  if (op == ArithmeticOperator::kMultiply && left.is_integral() && is_sequence(right)) {
    return repeat(runtime, right, left.integer());
  }
  if (op == ArithmeticOperator::kModulo && left.is(Kind::kString)) {
    return format_percent(runtime, left.string(),
                          right.is_tuple() ? right.list().items : std::vector<Value>{right});
  }
  return unsupported_operands(symbol(op), left, right);
}

Result<Value> negate(const Value& value) {
  if (value.is(Kind::kFloat)) return Value(-value.number());
  if (!value.is_integral())
    return input_error("operator - does not work on " + std::string(value.type_name()));
  if (value.integer() == INT64_MIN) return overflow();
  return Value(-value.integer());
}

Result<bool> equal(Runtime& runtime, const Value& left, const Value& right) {
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_steps(1));
  if (left.is_integral() && right.is_integral()) return left.integer() == right.integer();
  if (left.is_number() && right.is_number()) return left.number() == right.number();
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::kUndefined:
      return true;
    case Kind::kString:
      OUTRIDER_RETURN_IF_ERROR(runtime.spend_steps(static_cast<int64_t>(left.string().size() / 64)));
      return left.string() == right.string();
    case Kind::kList:
      return equal_lists(runtime, left.list(), right.list());
    case Kind::kDict:
      return equal_dicts(runtime, left.dict(), right.dict());
    default:
      return left.same_object(right);
  }
}

Result<bool> less(Runtime& runtime, const Value& left, const Value& right) {
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_steps(1));
  if (left.is_integral() && right.is_integral()) return left.integer() < right.integer();
  if (left.is_number() && right.is_number()) return left.number() < right.number();
  // The order of UTF-8 bytes is the order of code points.
  if (left.is(Kind::kString) && right.is(Kind::kString)) return left.string() < right.string();
  if (!left.is(Kind::kList) || !right.is(Kind::kList)) return unsupported_operands("<", left, right);
  const auto& a = left.list().items;
  const auto& b = right.list().items;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    OUTRIDER_TRY(const bool same, equal(runtime, a[i], b[i]));
    if (!same) return less(runtime, a[i], b[i]);
  }
  return a.size() < b.size();
}

Result<bool> contains(Runtime& runtime, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kString:
      if (!item.is(Kind::kString)) return unsupported_operands("in", item, container);
      OUTRIDER_RETURN_IF_ERROR(runtime.spend_steps(static_cast<int64_t>(container.string().size() / 64)));
      return container.string().find(item.string()) != std::string::npos;
    case Kind::kDict:
      return container.dict().find(item) != nullptr;
    case Kind::kList:
      for (const Value& candidate : container.list().items) {
        OUTRIDER_TRY(const bool same, equal(runtime, candidate, item));
        if (same) return true;
      }
      return false;
    default:
      return unsupported_operands("in", item, container);
  }
}

}  // namespace outrider::jinja
