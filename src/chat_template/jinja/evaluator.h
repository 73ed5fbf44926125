// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "chat_template/jinja/ast.h"
#include "chat_template/jinja/builtins.h"
#include "chat_template/jinja/runtime.h"
#include "chat_template/jinja/scope.h"

namespace outrider::jinja {

// Runs the body of a macro. The interpreter of statements implements it for expressions.
class MacroCaller {
 public:
  virtual ~MacroCaller() = default;
  virtual Result<Value> call_macro(const Macro& macro, const Arguments& arguments) = 0;
};

// Computes expressions. Errors name the line.
class Evaluator {
 public:
  Evaluator(Runtime& runtime, MacroCaller& macros) : runtime_(runtime), macros_(macros) {}

  Result<Value> evaluate(const Expression& expression, const Scope& scope);
  Result<bool> test(const Expression& condition, const Scope& scope);
  Result<Value> apply_filters(Value value, const std::vector<Suffix>& filters, const Scope& scope);
  // `call` is a Postfix that ends with a call; the callee sees `caller` under that name.
  Result<Value> call_with_caller(const Expression& call, Value caller, const Scope& scope);

 private:
  Result<Value> compute(const Literal& node, const Scope& scope);
  Result<Value> compute(const Name& node, const Scope& scope);
  Result<Value> compute(const Sequence& node, const Scope& scope);
  Result<Value> compute(const DictLiteral& node, const Scope& scope);
  Result<Value> compute(const Unary& node, const Scope& scope);
  Result<Value> compute(const Arithmetic& node, const Scope& scope);
  Result<Value> compute(const Concatenation& node, const Scope& scope);
  Result<Value> compute(const Comparison& node, const Scope& scope);
  Result<Value> compute(const Junction& node, const Scope& scope);
  Result<Value> compute(const Conditional& node, const Scope& scope);
  Result<Value> compute(const Postfix& node, const Scope& scope);

  Result<Value> apply(const Suffix& suffix, Value value, const Scope& scope);
  Result<Value> apply(const AttributeSuffix& suffix, const Value& value, const Scope& scope);
  Result<Value> apply(const ItemSuffix& suffix, const Value& value, const Scope& scope);
  Result<Value> apply(const SliceSuffix& suffix, const Value& value, const Scope& scope);
  Result<Value> apply(const CallSuffix& suffix, const Value& value, const Scope& scope);
  Result<Value> apply(const FilterSuffix& suffix, const Value& value, const Scope& scope);
  Result<Value> apply(const TestSuffix& suffix, const Value& value, const Scope& scope);

  Result<bool> compare(ComparisonOperator op, const Value& left, const Value& right);
  Result<std::optional<int64_t>> slice_bound(const ExpressionPtr& bound, const Scope& scope);
  Result<Arguments> evaluate_arguments(const CallArguments& arguments, const Scope& scope);
  Result<Value> call(const Value& callee, const Arguments& arguments);

  Runtime& runtime_;
  MacroCaller& macros_;
};

}  // namespace outrider::jinja
