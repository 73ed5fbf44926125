// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"

namespace outrider::jinja {

enum class TokenKind {
  kText,         // text outside of tags after whitespace control
  kOutputBegin,  // {{
  kOutputEnd,    // }}
  kTagBegin,     // {%
  kTagEnd,       // %}
  kName,
  kInteger,
  kFloat,
  kString,    // a literal with its escapes resolved
  kOperator,  // an operator or punctuation
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;
};

// Splits a template into tokens, with trim_blocks and lstrip_blocks on and keep_trailing_newline off, as in
// transformers. The last token is kEnd. Errors name the line.
Result<std::vector<Token>> tokenize(std::string_view source);

// Gives an error the form of all messages about a template: "chat template line 3: ...". A message that has a
// line already keeps it. Control characters become spaces.
Error at_line(int line, Error error);

}  // namespace outrider::jinja
