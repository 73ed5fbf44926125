// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "chat_template/jinja/ast.h"
#include "chat_template/jinja/token_stream.h"

namespace outrider::jinja {

// Recursive descent with Jinja's precedences, loosest first: if-else; or; and; not; comparisons; + and -; ~;
// *, /, // and %; **; unary signs; then filters, tests, calls, items and attributes.
class ExpressionParser {
 public:
  // `depth` is the nesting of the template, shared with the statements.
  ExpressionParser(TokenStream& tokens, int& depth) : tokens_(tokens), depth_(depth) {}

  Result<ExpressionPtr> parse_expression();
  // Items with commas between them make a tuple. Where conditionals are not allowed, an `if` ends the
  // expression.
  Result<ExpressionPtr> parse_tuple(bool with_conditional = true, bool may_be_empty = false);
  // Parses filter|filter(...) of {% filter %} and {% set x | filter %}, after the first bar.
  Result<std::vector<Suffix>> parse_filters();
  Result<CallArguments> parse_arguments();

 private:
  using Parse = Result<ExpressionPtr> (ExpressionParser::*)();

  Result<ExpressionPtr> parse_or();
  Result<ExpressionPtr> parse_and();
  Result<ExpressionPtr> parse_junction(std::string_view name, Parse parse_operand);
  Result<ExpressionPtr> parse_not();
  Result<ExpressionPtr> parse_comparison();
  Result<ExpressionPtr> parse_sum();
  Result<ExpressionPtr> parse_concatenation();
  Result<ExpressionPtr> parse_product();
  Result<ExpressionPtr> parse_power();
  Result<ExpressionPtr> parse_arithmetic(
      const std::vector<std::pair<std::string_view, ArithmeticOperator>>& operators, Parse parse_operand);
  Result<ExpressionPtr> parse_unary();
  Result<ExpressionPtr> parse_signed(bool with_filters);
  Result<ExpressionPtr> parse_primary();
  Result<ExpressionPtr> parse_constant_or_name();
  Result<ExpressionPtr> parse_number();
  Result<ExpressionPtr> parse_list();
  Result<ExpressionPtr> parse_dict();
  // The member that parses the next suffix, or nullptr where no suffix comes next.
  using ParseSuffix = Result<Suffix> (ExpressionParser::*)();
  Status parse_suffixes(ParseSuffix (ExpressionParser::*ahead)(), std::vector<Suffix>& suffixes);
  ParseSuffix postfix_ahead();
  ParseSuffix filter_or_test_ahead();
  Result<Suffix> parse_attribute();
  Result<Suffix> parse_item();
  Result<ExpressionPtr> parse_slice_bound();
  Result<Suffix> parse_call();
  Result<Suffix> parse_filter();
  Result<Suffix> parse_test();
  bool at_tuple_end() const;

  template <typename Node>
  ExpressionPtr make(int line, Node node) {
    return std::make_unique<Expression>(Expression{line, std::move(node)});
  }

  TokenStream& tokens_;
  int& depth_;
};

}  // namespace outrider::jinja
