// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "grammar/grammar_builder.h"

namespace outrider {

// The pieces that JSON texts are made of. White space may stand behind { [ , : and before } ], never
// elsewhere: nothing, one space, or a line break and up to kIndent spaces or tabs.
class JsonText {
 public:
  static constexpr int kIndent = 40;
  static constexpr int kDigits = 18;  // before and behind the point, at most
  static constexpr int kExponentDigits = 2;

  explicit JsonText(GrammarBuilder& builder) : builder_(builder) {}

  GrammarExpr whitespace();
  GrammarExpr value();   // any
  GrammarExpr object();  // any
  GrammarExpr array();   // any
  GrammarExpr integer();
  GrammarExpr number();
  // Any string of so many characters.
  GrammarExpr string(int32_t min = 0, int32_t max = GrammarBuilder::kUnbounded);
  // What stands in a string for one of these characters; an escape only where one is needed.
  GrammarExpr character(const CodePointSet& set);
  // The characters that stand for themselves in a string.
  static const CodePointSet& plain_characters();

  GrammarExpr quoted(GrammarExpr inside);
  GrammarExpr members(GrammarExpr inside) { return bracketed("{", inside, "}"); }
  GrammarExpr elements(GrammarExpr inside) { return bracketed("[", inside, "]"); }
  GrammarExpr comma() { return builder_.sequence({builder_.literal(","), whitespace()}); }
  // `inside` between brackets; nothing inside where that is empty.
  GrammarExpr bracketed(std::string_view open, GrammarExpr inside, std::string_view close);
  GrammarExpr member(GrammarExpr key, GrammarExpr value) {
    return builder_.sequence({key, builder_.literal(":"), whitespace(), value});
  }
  // `part` as often as said, commas between; -1: any number.
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
