// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat_template/jinja/lexer.h"

namespace outrider::jinja {

// The tokens still to be read, shared by the parsers of statements and expressions.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  // Returns the current token and moves on; the last token stays current.
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }

  bool at(TokenKind kind) const { return current().kind == kind; }
  bool at_name(std::string_view name) const { return at(TokenKind::kName) && current().text == name; }
  bool at_operator(std::string_view op) const { return at(TokenKind::kOperator) && current().text == op; }
  bool skip_name(std::string_view name) { return at_name(name) && (take(), true); }
  bool skip_operator(std::string_view op) { return at_operator(op) && (take(), true); }

  Status expect_operator(std::string_view op);
  Status expect_name(std::string_view name);
  Result<std::string> expect_any_name(std::string_view what);
  Status expect_tag_end();
  Error unexpected(std::string_view expected) const;
  Error fail(std::string message) const { return at_line(current().line, input_error(std::move(message))); }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

// Counts one level of nesting during its lifetime.
class NestingLevel {
 public:
  explicit NestingLevel(int& depth) : depth_(++depth) {}
  ~NestingLevel() { --depth_; }
  NestingLevel(const NestingLevel&) = delete;
  NestingLevel& operator=(const NestingLevel&) = delete;
  bool too_deep() const { return depth_ > kMaxNesting; }

 private:
  static constexpr int kMaxNesting = 100;
  int& depth_;
};

}  // namespace outrider::jinja
