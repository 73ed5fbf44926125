// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/expression_parser.h"

#include <charconv>
#include <optional>

namespace outrider::jinja {

namespace {

// Calls through filters such as map('map', ...) recurse once per argument.
constexpr size_t kMaxArguments = 100;

std::optional<ComparisonOperator> comparison_operator(const Token& token) {
  static constexpr std::pair<std::string_view, ComparisonOperator> kOperators[] = {
      {"==", ComparisonOperator::kEqual},  {"!=", ComparisonOperator::kNotEqual},
      {"<", ComparisonOperator::kLess},    {"<=", ComparisonOperator::kLessEqual},
      {">", ComparisonOperator::kGreater}, {">=", ComparisonOperator::kGreaterEqual},
  };
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  for (const auto& [text, op] : kOperators) {
    if (token.text == text) return op;
  }
  return std::nullopt;
}

}  // namespace

Result<ExpressionPtr> ExpressionParser::parse_expression() {
  const NestingLevel level(depth_);
  if (level.too_deep()) return tokens_.fail("expressions are nested too deeply");
  const int line = tokens_.current().line;
  OUTRIDER_TRY(ExpressionPtr value, parse_or());
  if (!tokens_.skip_name("if")) return value;
  OUTRIDER_TRY(ExpressionPtr condition, parse_or());
  ExpressionPtr otherwise;
  if (tokens_.skip_name("else")) {
    OUTRIDER_TRY(otherwise, parse_expression());
  }
  return make(line, Conditional{std::move(condition), std::move(value), std::move(otherwise)});
}

bool ExpressionParser::at_tuple_end() const {
  return tokens_.at(TokenKind::kOutputEnd) || tokens_.at(TokenKind::kTagEnd) || tokens_.at_operator(")");
}

Result<ExpressionPtr> ExpressionParser::parse_tuple(bool with_conditional, bool may_be_empty) {
  const int line = tokens_.current().line;
  Sequence tuple{{}, true};
  bool has_comma = false;
  while (!at_tuple_end()) {
    OUTRIDER_TRY(ExpressionPtr item, with_conditional ? parse_expression() : parse_or());
    tuple.items.push_back(std::move(item));
    if (!tokens_.skip_operator(",")) break;
    has_comma = true;
  }
  if (tuple.items.empty() && !may_be_empty) return tokens_.unexpected("an expression");
  if (tuple.items.size() == 1 && !has_comma) return std::move(tuple.items[0]);
  return make(line, std::move(tuple));
}

Result<ExpressionPtr> ExpressionParser::parse_junction(std::string_view name, Parse parse_operand) {
  const int line = tokens_.current().line;
  OUTRIDER_TRY(ExpressionPtr first, (this->*parse_operand)());
  if (!tokens_.at_name(name)) return first;
  Junction junction{name == "and", {}};
  junction.operands.push_back(std::move(first));
  while (tokens_.skip_name(name)) {
    OUTRIDER_TRY(ExpressionPtr operand, (this->*parse_operand)());
    junction.operands.push_back(std::move(operand));
  }
  return make(line, std::move(junction));
}

Result<ExpressionPtr> ExpressionParser::parse_or() {
  return parse_junction("or", &ExpressionParser::parse_and);
}

Result<ExpressionPtr> ExpressionParser::parse_and() {
  return parse_junction("and", &ExpressionParser::parse_not);
}

Result<ExpressionPtr> ExpressionParser::parse_not() {
  const NestingLevel level(depth_);
  if (level.too_deep()) return tokens_.fail("expressions are nested too deeply");
  const int line = tokens_.current().line;
  if (!tokens_.skip_name("not")) return parse_comparison();
  OUTRIDER_TRY(ExpressionPtr operand, parse_not());
  return make(line, Unary{UnaryOperator::kNot, std::move(operand)});
}

Result<ExpressionPtr> ExpressionParser::parse_comparison() {
  const int line = tokens_.current().line;
  OUTRIDER_TRY(ExpressionPtr first, parse_sum());
  Comparison comparison{std::move(first), {}};
  while (true) {
    std::optional<ComparisonOperator> op = comparison_operator(tokens_.current());
    if (op) {
      tokens_.take();
    } else if (tokens_.skip_name("in")) {
      op = ComparisonOperator::kIn;
    } else if (tokens_.at_name("not") && tokens_.next().kind == TokenKind::kName &&
               tokens_.next().text == "in") {
      tokens_.take();
      tokens_.take();
      op = ComparisonOperator::kNotIn;
    } else {
      break;
    }
    OUTRIDER_TRY(ExpressionPtr operand, parse_sum());
    comparison.rest.emplace_back(*op, std::move(operand));
  }
  if (comparison.rest.empty()) return std::move(comparison.first);
  return make(line, std::move(comparison));
}

Result<ExpressionPtr> ExpressionParser::parse_arithmetic(
    const std::vector<std::pair<std::string_view, ArithmeticOperator>>& operators, Parse parse_operand) {
  const int line = tokens_.current().line;
  OUTRIDER_TRY(ExpressionPtr first, (this->*parse_operand)());
  Arithmetic arithmetic{std::move(first), {}};
  for (size_t i = 0; i < operators.size();) {
    if (!tokens_.skip_operator(operators[i].first)) {
      ++i;
      continue;
    }
    OUTRIDER_TRY(ExpressionPtr operand, (this->*parse_operand)());
    arithmetic.rest.emplace_back(operators[i].second, std::move(operand));
    i = 0;
  }
  if (arithmetic.rest.empty()) return std::move(arithmetic.first);
  return make(line, std::move(arithmetic));
}

Result<ExpressionPtr> ExpressionParser::parse_sum() {
  return parse_arithmetic({{"+", ArithmeticOperator::kAdd}, {"-", ArithmeticOperator::kSubtract}},
                          &ExpressionParser::parse_concatenation);
}

Result<ExpressionPtr> ExpressionParser::parse_concatenation() {
  const int line = tokens_.current().line;
  OUTRIDER_TRY(ExpressionPtr first, parse_product());
  if (!tokens_.at_operator("~")) return first;
  Concatenation concatenation;
  concatenation.parts.push_back(std::move(first));
  while (tokens_.skip_operator("~")) {
    OUTRIDER_TRY(ExpressionPtr part, parse_product());
    concatenation.parts.push_back(std::move(part));
  }
  return make(line, std::move(concatenation));
}

Result<ExpressionPtr> ExpressionParser::parse_product() {
  return parse_arithmetic({{"*", ArithmeticOperator::kMultiply},
                           {"/", ArithmeticOperator::kDivide},
                           {"//", ArithmeticOperator::kFloorDivide},
                           {"%", ArithmeticOperator::kModulo}},
                          &ExpressionParser::parse_power);
}

Result<ExpressionPtr> ExpressionParser::parse_power() {
  return parse_arithmetic({{"**", ArithmeticOperator::kPower}}, &ExpressionParser::parse_unary);
}

Result<ExpressionPtr> ExpressionParser::parse_unary() { return parse_signed(true); }

// A sign binds tighter than filters and tests, looser than calls, items and attributes.
Result<ExpressionPtr> ExpressionParser::parse_signed(bool with_filters) {
  const NestingLevel level(depth_);
  if (level.too_deep()) return tokens_.fail("expressions are nested too deeply");
  const int line = tokens_.current().line;
  Postfix postfix;
  if (tokens_.at_operator("-") || tokens_.at_operator("+")) {
    const UnaryOperator op = tokens_.take().text == "-" ? UnaryOperator::kMinus : UnaryOperator::kPlus;
    OUTRIDER_TRY(ExpressionPtr operand, parse_signed(false));
    postfix.base = make(line, Unary{op, std::move(operand)});
  } else {
    OUTRIDER_TRY(postfix.base, parse_primary());
  }
  OUTRIDER_RETURN_IF_ERROR(parse_suffixes(&ExpressionParser::postfix_ahead, postfix.suffixes));
  if (with_filters)
    OUTRIDER_RETURN_IF_ERROR(parse_suffixes(&ExpressionParser::filter_or_test_ahead, postfix.suffixes));
  if (postfix.suffixes.empty()) return std::move(postfix.base);
  return make(line, std::move(postfix));
}

Result<ExpressionPtr> ExpressionParser::parse_primary() {
  const int line = tokens_.current().line;
  switch (tokens_.current().kind) {
    case TokenKind::kName:
      return parse_constant_or_name();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return parse_number();
    case TokenKind::kString: {
      std::string text;
      while (tokens_.at(TokenKind::kString)) text += tokens_.take().text;
      return make(line, Literal{Value(std::move(text))});
    }
    default:
      break;
  }
  if (tokens_.skip_operator("(")) {
    OUTRIDER_TRY(ExpressionPtr tuple, parse_tuple(true, true));
    OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator(")"));
    return tuple;
  }
  if (tokens_.at_operator("[")) return parse_list();
  if (tokens_.at_operator("{")) return parse_dict();
  return tokens_.unexpected("an expression");
}

Result<ExpressionPtr> ExpressionParser::parse_constant_or_name() {
  const Token token = tokens_.take();
  if (token.text == "true" || token.text == "True") return make(token.line, Literal{Value(true)});
  if (token.text == "false" || token.text == "False") return make(token.line, Literal{Value(false)});
  if (token.text == "none" || token.text == "None") return make(token.line, Literal{Value(None{})});
  return make(token.line, Name{token.text});
}

Result<ExpressionPtr> ExpressionParser::parse_number() {
  const Token& token = tokens_.current();
  const char* end = token.text.data() + token.text.size();
  Value value;
  std::errc error;
  if (token.kind == TokenKind::kInteger) {
    int64_t number = 0;
    error = std::from_chars(token.text.data(), end, number).ec;
    value = number;
  } else {
    double number = 0;
    error = std::from_chars(token.text.data(), end, number).ec;
    value = number;
  }
  if (error != std::errc()) return tokens_.fail("the number " + token.text + " is out of range");
  return make(tokens_.take().line, Literal{std::move(value)});
}

Result<ExpressionPtr> ExpressionParser::parse_list() {
  const int line = tokens_.take().line;
  Sequence list;
  while (!tokens_.at_operator("]")) {
    OUTRIDER_TRY(ExpressionPtr item, parse_expression());
    list.items.push_back(std::move(item));
    if (!tokens_.skip_operator(",")) break;
  }
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator("]"));
  return make(line, std::move(list));
}

Result<ExpressionPtr> ExpressionParser::parse_dict() {
  const int line = tokens_.take().line;
  DictLiteral dict;
  while (!tokens_.at_operator("}")) {
    OUTRIDER_TRY(ExpressionPtr key, parse_expression());
    OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator(":"));
    OUTRIDER_TRY(ExpressionPtr value, parse_expression());
    dict.entries.emplace_back(std::move(key), std::move(value));
    if (!tokens_.skip_operator(",")) break;
  }
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator("}"));
  return make(line, std::move(dict));
}

Status ExpressionParser::parse_suffixes(ParseSuffix (ExpressionParser::*ahead)(),
                                        std::vector<Suffix>& suffixes) {
  while (const ParseSuffix parse = (this->*ahead)()) {
    OUTRIDER_TRY(Suffix suffix, (this->*parse)());
    suffixes.push_back(std::move(suffix));
  }
  return {};
}

ExpressionParser::ParseSuffix ExpressionParser::postfix_ahead() {
  if (tokens_.at_operator(".")) return &ExpressionParser::parse_attribute;
  if (tokens_.at_operator("[")) return &ExpressionParser::parse_item;
  if (tokens_.at_operator("(")) return &ExpressionParser::parse_call;
  return nullptr;
}

ExpressionParser::ParseSuffix ExpressionParser::filter_or_test_ahead() {
  if (tokens_.skip_operator("|")) return &ExpressionParser::parse_filter;
  if (tokens_.skip_name("is")) return &ExpressionParser::parse_test;
  if (tokens_.at_operator("(")) return &ExpressionParser::parse_call;
  return nullptr;
}

Result<Suffix> ExpressionParser::parse_attribute() {
  const int line = tokens_.take().line;
  if (tokens_.at(TokenKind::kInteger)) {
    OUTRIDER_TRY(ExpressionPtr key, parse_number());
    return Suffix{line, ItemSuffix{std::move(key)}};
  }
  OUTRIDER_TRY(std::string name, tokens_.expect_any_name("the name of an attribute"));
  return Suffix{line, AttributeSuffix{std::move(name)}};
}

// Parses a bound of a slice; null where it is left out.
Result<ExpressionPtr> ExpressionParser::parse_slice_bound() {
  if (tokens_.at_operator(":") || tokens_.at_operator("]")) return ExpressionPtr();
  return parse_expression();
}

Result<Suffix> ExpressionParser::parse_item() {
  const int line = tokens_.take().line;
  if (tokens_.at_operator("]")) return tokens_.unexpected("an index");
  OUTRIDER_TRY(ExpressionPtr first, parse_slice_bound());
  if (!tokens_.skip_operator(":")) {
    OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator("]"));
    return Suffix{line, ItemSuffix{std::move(first)}};
  }
  SliceSuffix slice{std::move(first), nullptr, nullptr};
  OUTRIDER_TRY(slice.stop, parse_slice_bound());
  if (tokens_.skip_operator(":")) {
    OUTRIDER_TRY(slice.step, parse_slice_bound());
  }
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator("]"));
  return Suffix{line, std::move(slice)};
}

Result<CallArguments> ExpressionParser::parse_arguments() {
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator("("));
  CallArguments arguments;
  while (!tokens_.at_operator(")")) {
    if (tokens_.at_operator("*") || tokens_.at_operator("**")) {
      return tokens_.fail("unpacking arguments with * or ** is not supported");
    }
    const Token& following = tokens_.next();
    if (tokens_.at(TokenKind::kName) && following.kind == TokenKind::kOperator && following.text == "=") {
      std::string name = tokens_.take().text;
      tokens_.take();
      OUTRIDER_TRY(ExpressionPtr value, parse_expression());
      arguments.named.emplace_back(std::move(name), std::move(value));
    } else {
      if (!arguments.named.empty()) return tokens_.fail("a positional argument stands after a named one");
      OUTRIDER_TRY(ExpressionPtr value, parse_expression());
      arguments.positional.push_back(std::move(value));
    }
    if (arguments.positional.size() + arguments.named.size() > kMaxArguments) {
      return tokens_.fail("a call has more than " + std::to_string(kMaxArguments) + " arguments");
    }
    if (!tokens_.skip_operator(",")) break;
  }
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator(")"));
  return arguments;
}

Result<Suffix> ExpressionParser::parse_call() {
  const int line = tokens_.current().line;
  OUTRIDER_TRY(CallArguments arguments, parse_arguments());
  return Suffix{line, CallSuffix{std::move(arguments)}};
}

// Parses a filter after its bar.
Result<Suffix> ExpressionParser::parse_filter() {
  const int line = tokens_.current().line;
  FilterSuffix filter;
  OUTRIDER_TRY(filter.name, tokens_.expect_any_name("the name of a filter"));
  if (tokens_.at_operator("(")) {
    OUTRIDER_TRY(filter.arguments, parse_arguments());
  }
  return Suffix{line, std::move(filter)};
}

Result<std::vector<Suffix>> ExpressionParser::parse_filters() {
  std::vector<Suffix> filters;
  do {
    OUTRIDER_TRY(Suffix filter, parse_filter());
    filters.push_back(std::move(filter));
  } while (tokens_.skip_operator("|"));
  return filters;
}

// Parses a test after `is`. A single argument needs no brackets: `x is divisibleby 3`.
Result<Suffix> ExpressionParser::parse_test() {
  const int line = tokens_.current().line;
  TestSuffix test;
  test.negated = tokens_.skip_name("not");
  OUTRIDER_TRY(test.name, tokens_.expect_any_name("the name of a test"));
  const bool is_keyword = tokens_.at_name("else") || tokens_.at_name("or") || tokens_.at_name("and") ||
                          tokens_.at_name("is") || tokens_.at_name("if") || tokens_.at_name("in") ||
                          tokens_.at_name("not");
  const bool is_operand = tokens_.at(TokenKind::kName) || tokens_.at(TokenKind::kString) ||
                          tokens_.at(TokenKind::kInteger) || tokens_.at(TokenKind::kFloat) ||
                          tokens_.at_operator("[") || tokens_.at_operator("{");
  if (tokens_.at_operator("(")) {
    OUTRIDER_TRY(test.arguments, parse_arguments());
  } else if (is_operand && !is_keyword) {
    Postfix operand;
    OUTRIDER_TRY(operand.base, parse_primary());
    OUTRIDER_RETURN_IF_ERROR(parse_suffixes(&ExpressionParser::postfix_ahead, operand.suffixes));
    test.arguments.positional.push_back(make(line, std::move(operand)));
  }
  return Suffix{line, std::move(test)};
}

}  // namespace outrider::jinja
