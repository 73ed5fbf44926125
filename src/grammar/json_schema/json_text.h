// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "grammar/grammar_builder.h"

namespace outrider {

// Makes the expressions of JSON texts. White space is allowed after { [ , : and before } ] only: none, one
// space, or a line break and up to kIndent spaces or tabs.
class JsonText {
 public:
  static constexpr int kIndent = 40;
  static constexpr int kDigits = 18;  // limit before and after the decimal point
  static constexpr int kExponentDigits = 2;

  explicit JsonText(GrammarBuilder& builder) : builder_(builder) {}

  GrammarExpr whitespace();
  GrammarExpr value();   // any value
  GrammarExpr object();  // any object
  GrammarExpr array();   // any array
  GrammarExpr integer();
  GrammarExpr number();
  // Any string of min to max characters.
  GrammarExpr string(int32_t min = 0, int32_t max = GrammarBuilder::kUnbounded);
  // The spelling of one of these characters within a string, escaped only where JSON requires it.
  GrammarExpr character(const CodePointSet& set);
  // The characters that need no escape within a string.
  static const CodePointSet& plain_characters();

  GrammarExpr quoted(GrammarExpr inside);
  GrammarExpr members(GrammarExpr inside) { return bracketed("{", inside, "}"); }
  GrammarExpr elements(GrammarExpr inside) { return bracketed("[", inside, "]"); }
  GrammarExpr comma() { return builder_.sequence({builder_.literal(","), whitespace()}); }
  // `inside` between brackets with white space; if `inside` is empty, so are the brackets.
  GrammarExpr bracketed(std::string_view open, GrammarExpr inside, std::string_view close);
  GrammarExpr member(GrammarExpr key, GrammarExpr value) {
    return builder_.sequence({key, builder_.literal(":"), whitespace(), value});
  }
  // `part` repeated min to max times with commas in between; max -1: unbounded.
  GrammarExpr list(GrammarExpr part, int32_t min, int32_t max);

 private:
  GrammarExpr any_character();

  GrammarBuilder& builder_;
  GrammarExpr whitespace_ = -1;
  GrammarExpr any_character_ = -1;
  GrammarExpr value_ = -1;
  GrammarExpr object_ = -1;
  GrammarExpr array_ = -1;
  GrammarExpr integer_ = -1;
  GrammarExpr number_ = -1;
  std::map<std::pair<int32_t, int32_t>, GrammarExpr> strings_;
};

}  // namespace outrider
