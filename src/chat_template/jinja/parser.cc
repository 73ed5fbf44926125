// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/parser.h"

#include <initializer_list>

#include "chat_template/jinja/expression_parser.h"

namespace outrider::jinja {

namespace {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)), expressions_(tokens_, depth_) {}

  Result<Body> run() {
    OUTRIDER_TRY(Body body, parse_body({}));
    return body;
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  // Reads up to a tag with one of these names, which becomes the current token; without names, up to the end.
  Result<Body> parse_body(Ends ends);
  // Reads the body after an opening tag, and the closing tag.
  Result<Body> parse_block(std::string_view end);
  Result<Statement> parse_output();
  Result<Statement> parse_statement();
  Result<Statement> parse_if(int line);
  Result<Statement> parse_for(int line);
  Result<Statement> parse_set(int line);
  Result<Statement> parse_macro(int line);
  Result<Statement> parse_call_block(int line);
  Result<Statement> parse_filter_block(int line);
  Result<Statement> parse_with(int line);
  Result<Statement> parse_generation(int line);
  Result<std::vector<MacroDefinition::Parameter>> parse_parameters();
  Result<Target> parse_target();
  Result<Target> parse_single_target();

  TokenStream tokens_;
  int depth_ = 0;
  int loops_ = 0;  // number of loops around the current statement, which break and continue need
  ExpressionParser expressions_;
};

bool is_one_of(const Token& token, std::initializer_list<std::string_view> names) {
  if (token.kind != TokenKind::kName) return false;
  for (std::string_view name : names) {
    if (token.text == name) return true;
  }
  return false;
}

Result<Body> Parser::parse_body(Ends ends) {
  const NestingLevel level(depth_);
  if (level.too_deep()) return tokens_.fail("tags are nested too deeply");
  const int line = tokens_.current().line;
  Body body;
  while (!tokens_.at(TokenKind::kEnd)) {
    if (tokens_.at(TokenKind::kText)) {
      const Token& token = tokens_.take();
      body.push_back({token.line, Text{token.text}});
    } else if (tokens_.at(TokenKind::kOutputBegin)) {
      OUTRIDER_TRY(Statement output, parse_output());
      body.push_back(std::move(output));
    } else {
      tokens_.take();
      if (is_one_of(tokens_.current(), ends)) return body;
      OUTRIDER_TRY(Statement statement, parse_statement());
      body.push_back(std::move(statement));
    }
  }
  if (ends.size() == 0) return body;
  return at_line(line, input_error("expected '{% " + std::string(*(ends.end() - 1)) +
                                   " %}', found the end of the template"));
}

Result<Body> Parser::parse_block(std::string_view end) {
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_tag_end());
  OUTRIDER_TRY(Body body, parse_body({end}));
  tokens_.take();
  return body;
}

Result<Statement> Parser::parse_output() {
  const int line = tokens_.take().line;
  OUTRIDER_TRY(ExpressionPtr value, expressions_.parse_tuple());
  if (!tokens_.at(TokenKind::kOutputEnd)) return tokens_.unexpected("'}}'");
  tokens_.take();
  return Statement{line, Output{std::move(value)}};
}

// Parses a statement after '{%'.
Result<Statement> Parser::parse_statement() {
  using Parse = Result<Statement> (Parser::*)(int line);
  static constexpr std::pair<std::string_view, Parse> kTags[] = {
      {"if", &Parser::parse_if},           {"for", &Parser::parse_for},
      {"set", &Parser::parse_set},         {"macro", &Parser::parse_macro},
      {"call", &Parser::parse_call_block}, {"filter", &Parser::parse_filter_block},
      {"with", &Parser::parse_with},       {"generation", &Parser::parse_generation},
  };
  if (!tokens_.at(TokenKind::kName)) return tokens_.unexpected("the name of a tag");
  const Token tag = tokens_.take();
  Result<Statement> statement =
      at_line(tag.line, input_error("the tag '" + tag.text + "' is not supported here"));
  for (const auto& [name, parse] : kTags) {
    if (tag.text == name) statement = (this->*parse)(tag.line);
  }
  if (tag.text == "break" || tag.text == "continue") {
    if (loops_ == 0) return at_line(tag.line, input_error("'" + tag.text + "' stands outside of a loop"));
    statement = Statement{tag.line, Break{}};
    if (tag.text == "continue") statement = Statement{tag.line, Continue{}};
  }
  if (!statement.ok()) return statement;
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_tag_end());
  return statement;
}

Result<Statement> Parser::parse_if(int line) {
  If node;
  do {
    OUTRIDER_TRY(ExpressionPtr condition, expressions_.parse_tuple(false));
    OUTRIDER_RETURN_IF_ERROR(tokens_.expect_tag_end());
    OUTRIDER_TRY(Body body, parse_body({"elif", "else", "endif"}));
    node.branches.push_back({std::move(condition), std::move(body)});
  } while (tokens_.skip_name("elif"));
  if (tokens_.skip_name("else")) {
    OUTRIDER_RETURN_IF_ERROR(tokens_.expect_tag_end());
    OUTRIDER_TRY(node.otherwise, parse_body({"endif"}));
  }
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_name("endif"));
  return Statement{line, std::move(node)};
}

Result<Statement> Parser::parse_for(int line) {
  For node;
  OUTRIDER_TRY(node.target, parse_target());
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_name("in"));
  OUTRIDER_TRY(node.iterable, expressions_.parse_tuple(false));
  if (tokens_.skip_name("if")) {
    OUTRIDER_TRY(node.condition, expressions_.parse_expression());
  }
  if (tokens_.at_name("recursive")) return tokens_.fail("recursive loops are not supported");
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_tag_end());
  ++loops_;
  OUTRIDER_TRY(node.body, parse_body({"else", "endfor"}));
  --loops_;
  if (tokens_.skip_name("else")) {
    OUTRIDER_RETURN_IF_ERROR(tokens_.expect_tag_end());
    OUTRIDER_TRY(node.otherwise, parse_body({"endfor"}));
  }
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_name("endfor"));
  return Statement{line, std::move(node)};
}

Result<Statement> Parser::parse_set(int line) {
  OUTRIDER_TRY(Target target, parse_target());
  if (tokens_.skip_operator("=")) {
    OUTRIDER_TRY(ExpressionPtr value, expressions_.parse_tuple());
    return Statement{line, Set{std::move(target), std::move(value)}};
  }
  SetBlock node{std::move(target), {}, {}};
  if (!node.target.parts.empty()) return tokens_.unexpected("'='");
  if (tokens_.skip_operator("|")) {
    OUTRIDER_TRY(node.filters, expressions_.parse_filters());
  }
  OUTRIDER_TRY(node.body, parse_block("endset"));
  return Statement{line, std::move(node)};
}

Result<std::vector<MacroDefinition::Parameter>> Parser::parse_parameters() {
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator("("));
  std::vector<MacroDefinition::Parameter> parameters;
  while (!tokens_.at_operator(")")) {
    MacroDefinition::Parameter parameter;
    OUTRIDER_TRY(parameter.name, tokens_.expect_any_name("the name of a parameter"));
    if (tokens_.skip_operator("=")) {
      OUTRIDER_TRY(parameter.default_value, expressions_.parse_expression());
    } else if (!parameters.empty() && parameters.back().default_value) {
      return tokens_.fail("a parameter without a default stands after one with a default");
    }
    parameters.push_back(std::move(parameter));
    if (!tokens_.skip_operator(",")) break;
  }
  OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator(")"));
  return parameters;
}

// The body of a macro is not a part of the loop around its definition.
Result<Statement> Parser::parse_macro(int line) {
  MacroDefinition node;
  OUTRIDER_TRY(node.name, tokens_.expect_any_name("the name of a macro"));
  OUTRIDER_TRY(node.parameters, parse_parameters());
  const int loops_around = std::exchange(loops_, 0);
  OUTRIDER_TRY(node.body, parse_block("endmacro"));
  loops_ = loops_around;
  return Statement{line, std::move(node)};
}

Result<Statement> Parser::parse_call_block(int line) {
  CallBlock node;
  node.caller.name = "caller";
  if (tokens_.at_operator("(")) {
    OUTRIDER_TRY(node.caller.parameters, parse_parameters());
  }
  OUTRIDER_TRY(node.call, expressions_.parse_expression());
  const auto* postfix = std::get_if<Postfix>(&node.call->node);
  if (postfix == nullptr || !std::holds_alternative<CallSuffix>(postfix->suffixes.back().node)) {
    return tokens_.unexpected("the call of a macro");
  }
  const int loops_around = std::exchange(loops_, 0);
  OUTRIDER_TRY(node.caller.body, parse_block("endcall"));
  loops_ = loops_around;
  return Statement{line, std::move(node)};
}

Result<Statement> Parser::parse_filter_block(int line) {
  FilterBlock node;
  OUTRIDER_TRY(node.filters, expressions_.parse_filters());
  OUTRIDER_TRY(node.body, parse_block("endfilter"));
  return Statement{line, std::move(node)};
}

Result<Statement> Parser::parse_with(int line) {
  With node;
  while (!tokens_.at(TokenKind::kTagEnd)) {
    if (!node.assignments.empty()) OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator(","));
    OUTRIDER_TRY(Target target, parse_single_target());
    OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator("="));
    OUTRIDER_TRY(ExpressionPtr value, expressions_.parse_expression());
    node.assignments.emplace_back(std::move(target), std::move(value));
  }
  OUTRIDER_TRY(node.body, parse_block("endwith"));
  return Statement{line, std::move(node)};
}

Result<Statement> Parser::parse_generation(int line) {
  OUTRIDER_TRY(Body body, parse_block("endgeneration"));
  return Statement{line, Generation{std::move(body)}};
}

Result<Target> Parser::parse_single_target() {
  const NestingLevel level(depth_);
  if (level.too_deep()) return tokens_.fail("targets are nested too deeply");
  if (tokens_.skip_operator("(")) {
    OUTRIDER_TRY(Target target, parse_target());
    OUTRIDER_RETURN_IF_ERROR(tokens_.expect_operator(")"));
    return target;
  }
  Target target;
  OUTRIDER_TRY(target.name, tokens_.expect_any_name("a name to assign to"));
  for (std::string_view reserved : {"true", "false", "none", "True", "False", "None"}) {
    if (target.name == reserved) return tokens_.fail("'" + target.name + "' cannot be assigned to");
  }
  if (tokens_.skip_operator(".")) {
    OUTRIDER_TRY(target.attribute, tokens_.expect_any_name("the name of an attribute"));
  }
  return target;
}

Result<Target> Parser::parse_target() {
  OUTRIDER_TRY(Target first, parse_single_target());
  if (!tokens_.at_operator(",")) return first;
  Target tuple;
  tuple.parts.push_back(std::move(first));
  while (tokens_.skip_operator(",")) {
    if (!tokens_.at(TokenKind::kName) && !tokens_.at_operator("(")) break;
    if (tokens_.at_name("in")) break;
    OUTRIDER_TRY(Target part, parse_single_target());
    tuple.parts.push_back(std::move(part));
  }
  return tuple;
}

}  // namespace

Result<Body> parse_template(std::string_view source) {
  OUTRIDER_TRY(std::vector<Token> tokens, tokenize(source));
  return Parser(std::move(tokens)).run();
}

}  // namespace outrider::jinja
