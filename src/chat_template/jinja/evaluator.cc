// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/evaluator.h"

#include "chat_template/jinja/lexer.h"
#include "chat_template/jinja/operators.h"
#include "chat_template/jinja/print.h"

namespace outrider::jinja {

namespace {

// Gives an error the line of the innermost expression that it passes.
Result<Value> located(int line, Result<Value> result) {
  if (result.ok()) return result;
  return at_line(line, std::move(result).error());
}

}  // namespace

Result<Value> Evaluator::evaluate(const Expression& expression, const Scope& scope) {
  if (Status entered = runtime_.enter(); !entered.ok()) return at_line(expression.line, entered.error());
  Result<Value> value = std::visit([&](const auto& node) { return compute(node, scope); }, expression.node);
  runtime_.leave();
  return located(expression.line, std::move(value));
}

Result<bool> Evaluator::test(const Expression& condition, const Scope& scope) {
  OUTRIDER_TRY(const Value value, evaluate(condition, scope));
  return value.truthy();
}

Result<Value> Evaluator::apply_filters(Value value, const std::vector<Suffix>& filters, const Scope& scope) {
  for (const Suffix& filter : filters) {
    OUTRIDER_TRY(value, apply(filter, std::move(value), scope));
  }
  return value;
}

Result<Value> Evaluator::call_with_caller(const Expression& call_expression, Value caller,
                                          const Scope& scope) {
  const Postfix& postfix = std::get<Postfix>(call_expression.node);
  OUTRIDER_TRY(Value callee, evaluate(*postfix.base, scope));
  for (size_t i = 0; i + 1 < postfix.suffixes.size(); ++i) {
    OUTRIDER_TRY(callee, apply(postfix.suffixes[i], std::move(callee), scope));
  }
  const Suffix& last = postfix.suffixes.back();
  OUTRIDER_TRY(Arguments arguments, evaluate_arguments(std::get<CallSuffix>(last.node).arguments, scope));
  arguments.named.emplace_back("caller", std::move(caller));
  return located(last.line, call(callee, arguments));
}

Result<Value> Evaluator::compute(const Literal& node, const Scope&) { return node.value; }

Result<Value> Evaluator::compute(const Name& node, const Scope& scope) {
  if (const Value* value = scope.find(node.name)) return *value;
  if (const Builtin* global = find_global(node.name)) return Value(Function{global, nullptr});
  return Value::undefined("'" + node.name + "' is undefined");
}

Result<Value> Evaluator::compute(const Sequence& node, const Scope& scope) {
  OUTRIDER_RETURN_IF_ERROR(runtime_.spend_bytes(sizeof(List) + node.items.size() * sizeof(Value)));
  std::vector<Value> items;
  for (const ExpressionPtr& item : node.items) {
    OUTRIDER_TRY(Value value, evaluate(*item, scope));
    items.push_back(std::move(value));
  }
  return node.is_tuple ? make_tuple(std::move(items)) : make_list(std::move(items));
}

Result<Value> Evaluator::compute(const DictLiteral& node, const Scope& scope) {
  OUTRIDER_RETURN_IF_ERROR(runtime_.spend_bytes(sizeof(Dict) + node.entries.size() * sizeof(Dict::Entry)));
  Dict dict;
  for (const auto& [key_expression, value_expression] : node.entries) {
    OUTRIDER_TRY(Value key, evaluate(*key_expression, scope));
    OUTRIDER_TRY(Value value, evaluate(*value_expression, scope));
    OUTRIDER_RETURN_IF_ERROR(dict.set(std::move(key), std::move(value)));
  }
  return make_dict(std::move(dict));
}

Result<Value> Evaluator::compute(const Unary& node, const Scope& scope) {
  OUTRIDER_TRY(const Value value, evaluate(*node.operand, scope));
  if (node.op == UnaryOperator::kNot) return Value(!value.truthy());
  if (value.is(Kind::kUndefined)) return input_error(value.undefined_reason());
  if (node.op == UnaryOperator::kMinus) return negate(value);
  return apply_arithmetic(runtime_, ArithmeticOperator::kAdd, Value(int64_t{0}), value);
}

Result<Value> Evaluator::compute(const Arithmetic& node, const Scope& scope) {
  OUTRIDER_TRY(Value value, evaluate(*node.first, scope));
  for (const auto& [op, expression] : node.rest) {
    OUTRIDER_TRY(const Value operand, evaluate(*expression, scope));
    OUTRIDER_TRY(value, located(expression->line, apply_arithmetic(runtime_, op, value, operand)));
  }
  return value;
}

Result<Value> Evaluator::compute(const Concatenation& node, const Scope& scope) {
  std::string out;
  for (const ExpressionPtr& part : node.parts) {
    OUTRIDER_TRY(const Value value, evaluate(*part, scope));
    OUTRIDER_TRY(const std::string text, to_text(runtime_, value));
    out += text;
  }
  OUTRIDER_RETURN_IF_ERROR(runtime_.spend_bytes(out.size()));
  return Value(std::move(out));
}

Result<bool> Evaluator::compare(ComparisonOperator op, const Value& left, const Value& right) {
  const auto less_or_equal = [&](const Value& a, const Value& b) -> Result<bool> {
    OUTRIDER_TRY(const bool is_less, less(runtime_, a, b));
    if (is_less) return true;
    return equal(runtime_, a, b);
  };
  const auto negated = [](Result<bool> result) -> Result<bool> {
    OUTRIDER_TRY(const bool value, std::move(result));
    return !value;
  };
  switch (op) {
    case ComparisonOperator::kEqual:
      return equal(runtime_, left, right);
    case ComparisonOperator::kNotEqual:
      return negated(equal(runtime_, left, right));
    case ComparisonOperator::kLess:
      return less(runtime_, left, right);
    case ComparisonOperator::kLessEqual:
      return less_or_equal(left, right);
    case ComparisonOperator::kGreater:
      return less(runtime_, right, left);
    case ComparisonOperator::kGreaterEqual:
      return less_or_equal(right, left);
    case ComparisonOperator::kIn:
      return contains(runtime_, right, left);
    case ComparisonOperator::kNotIn:
      return negated(contains(runtime_, right, left));
  }
  return false;
}

Result<Value> Evaluator::compute(const Comparison& node, const Scope& scope) {
  OUTRIDER_TRY(Value left, evaluate(*node.first, scope));
  for (const auto& [op, expression] : node.rest) {
    OUTRIDER_TRY(Value right, evaluate(*expression, scope));
    OUTRIDER_TRY(const bool holds, compare(op, left, right));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<Value> Evaluator::compute(const Junction& node, const Scope& scope) {
  Value value;
  for (const ExpressionPtr& operand : node.operands) {
    OUTRIDER_TRY(value, evaluate(*operand, scope));
    if (value.truthy() != node.is_and) break;
  }
  return value;
}

Result<Value> Evaluator::compute(const Conditional& node, const Scope& scope) {
  OUTRIDER_TRY(const bool holds, test(*node.condition, scope));
  if (holds) return evaluate(*node.value, scope);
  if (node.otherwise) return evaluate(*node.otherwise, scope);
  return Value::undefined("an inline if without else did not hold");
}

Result<Value> Evaluator::compute(const Postfix& node, const Scope& scope) {
  OUTRIDER_TRY(Value value, evaluate(*node.base, scope));
  for (const Suffix& suffix : node.suffixes) {
    OUTRIDER_TRY(value, apply(suffix, std::move(value), scope));
  }
  return value;
}

Result<Value> Evaluator::apply(const Suffix& suffix, Value value, const Scope& scope) {
  OUTRIDER_RETURN_IF_ERROR(runtime_.spend_steps(1));
  return located(suffix.line,
                 std::visit([&](const auto& node) { return apply(node, value, scope); }, suffix.node));
}

Result<Value> Evaluator::apply(const AttributeSuffix& suffix, const Value& value, const Scope&) {
  return get_attribute(value, suffix.name);
}

Result<Value> Evaluator::apply(const ItemSuffix& suffix, const Value& value, const Scope& scope) {
  OUTRIDER_TRY(const Value key, evaluate(*suffix.key, scope));
  return get_item(runtime_, value, key);
}

Result<std::optional<int64_t>> Evaluator::slice_bound(const ExpressionPtr& bound, const Scope& scope) {
  if (!bound) return std::optional<int64_t>();
  OUTRIDER_TRY(const Value value, evaluate(*bound, scope));
  if (value.is(Kind::kNone)) return std::optional<int64_t>();
  if (value.is_integral()) return std::optional<int64_t>(value.integer());
  return input_error("a slice needs integers, found " + std::string(value.type_name()));
}

Result<Value> Evaluator::apply(const SliceSuffix& suffix, const Value& value, const Scope& scope) {
  SliceBounds bounds;
  OUTRIDER_TRY(bounds.start, slice_bound(suffix.start, scope));
  OUTRIDER_TRY(bounds.stop, slice_bound(suffix.stop, scope));
  OUTRIDER_TRY(bounds.step, slice_bound(suffix.step, scope));
  return get_slice(runtime_, value, bounds);
}

Result<Value> Evaluator::apply(const CallSuffix& suffix, const Value& value, const Scope& scope) {
  OUTRIDER_TRY(const Arguments arguments, evaluate_arguments(suffix.arguments, scope));
  return call(value, arguments);
}

Result<Value> Evaluator::apply(const FilterSuffix& suffix, const Value& value, const Scope& scope) {
  OUTRIDER_TRY(const Arguments arguments, evaluate_arguments(suffix.arguments, scope));
  return apply_filter(runtime_, suffix.name, value, arguments);
}

Result<Value> Evaluator::apply(const TestSuffix& suffix, const Value& value, const Scope& scope) {
  OUTRIDER_TRY(const Arguments arguments, evaluate_arguments(suffix.arguments, scope));
  OUTRIDER_TRY(const bool passed, apply_test(runtime_, suffix.name, value, arguments));
  return Value(passed != suffix.negated);
}

Result<Arguments> Evaluator::evaluate_arguments(const CallArguments& arguments, const Scope& scope) {
  Arguments values;
  for (const ExpressionPtr& argument : arguments.positional) {
    OUTRIDER_TRY(Value value, evaluate(*argument, scope));
    values.positional.push_back(std::move(value));
  }
  for (const auto& [name, argument] : arguments.named) {
    OUTRIDER_TRY(Value value, evaluate(*argument, scope));
    values.named.emplace_back(name, std::move(value));
  }
  return values;
}

Result<Value> Evaluator::call(const Value& callee, const Arguments& arguments) {
  if (callee.is(Kind::kMacro)) return macros_.call_macro(*callee.macro(), arguments);
  if (callee.is(Kind::kFunction)) {
    const Function& function = callee.function();
    return function.builtin->function(runtime_, function.self ? *function.self : Value(), arguments);
  }
  if (callee.is(Kind::kUndefined)) return input_error(callee.undefined_reason());
  return input_error("a " + std::string(callee.type_name()) + " cannot be called");
}

}  // namespace outrider::jinja
