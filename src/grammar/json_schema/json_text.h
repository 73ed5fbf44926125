// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/grammar_builder.h"

namespace outrider {

// Makes the expressions of JSON texts, or of the same values in another notation. White space is allowed
// after { [ , : and before } ] only: none, one space, or a line break and up to kIndent spaces or tabs.
class JsonText {
 public:
  static constexpr int kIndent = 40;
  static constexpr int kDigits = 18;  // limit before and after the decimal point
  static constexpr int kExponentDigits = 2;

  explicit JsonText(GrammarBuilder& builder, ValueNotation notation = {})
      : builder_(builder), notation_(std::move(notation)) {}

  // Texts stand as they are, between marks, and names are bare.
  bool is_bare() const { return !notation_.quote.empty(); }
  std::string_view word(bool value) const;
  std::string_view null_word() const { return notation_.is_python ? "None" : "null"; }
  GrammarExpr boolean() { return builder_.one_of({std::string(word(true)), std::string(word(false))}); }
  // The spelling of a text, and of a name of a member; nullopt: the notation has none.
  std::optional<std::string> spelled_text(const std::string& text, std::string json) const;
  // Python's other spelling of a text, where it is no more than the text between single quotes.
  std::optional<std::string> single_quoted(const std::string& text) const;
  std::optional<std::string> spelled_name(const std::string& name, std::string json) const;

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
  // Any name of a member but these.
  GrammarExpr other_name(const std::vector<std::string>& names);
  GrammarExpr comma() { return builder_.sequence({builder_.literal(","), whitespace()}); }
  // `inside` between brackets with white space; if `inside` is empty, so are the brackets.
  GrammarExpr bracketed(std::string_view open, GrammarExpr inside, std::string_view close);
  GrammarExpr member(GrammarExpr key, GrammarExpr value) {
    return builder_.sequence({key, builder_.literal(":"), whitespace(), value});
  }
  // `part` repeated min to max times with commas in between; max -1: unbounded.
  GrammarExpr list(GrammarExpr part, int32_t min, int32_t max);

 private:
  // Any character of a string between these quotes, or its escape.
  GrammarExpr any_character(char quote);
  // The characters of bare texts that begin no mark.
  CodePointSet bare_characters() const;

  GrammarBuilder& builder_;
  ValueNotation notation_;
  GrammarExpr whitespace_ = -1;
  std::map<char, GrammarExpr> any_characters_;  // by quote
  GrammarExpr value_ = -1;
  GrammarExpr object_ = -1;
  GrammarExpr array_ = -1;
  GrammarExpr integer_ = -1;
  GrammarExpr number_ = -1;
  std::map<std::pair<int32_t, int32_t>, GrammarExpr> strings_;
};

}  // namespace outrider
