// SPDX-License-Identifier: Apache-2.0
#include "grammar/json_schema/json_text.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/utf8.h"

namespace outrider {
namespace {

constexpr int32_t kUnbounded = GrammarBuilder::kUnbounded;

const CodePointSet& digits() {
  static const CodePointSet kSet{{'0', '9'}};
  return kSet;
}

// The characters of names that stand without quotes.
const CodePointSet& name_characters() {
  static const CodePointSet kSet{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return kSet;
}

// The characters of a text; nullopt: one of them is not in `set`.
std::optional<std::u32string> characters_within(std::string_view text, const CodePointSet& set) {
  std::u32string characters;
  while (!text.empty()) {
    const utf8::CodePoint next = utf8::decode(text);
    if (next.length <= 0 || !set.contains(next.value)) return std::nullopt;
    characters += static_cast<char32_t>(next.value);
    text.remove_prefix(static_cast<size_t>(next.length));
  }
  return characters;
}

}  // namespace

std::string_view JsonText::word(bool value) const {
  if (notation_.is_python) return value ? "True" : "False";
  return value ? "true" : "false";
}

std::optional<std::string> JsonText::spelled_text(const std::string& text, std::string json) const {
  if (!is_bare()) return json;
  const bool is_broken = notation_.is_one_line && text.find('\n') != std::string::npos;
  if (is_broken || text.find(notation_.quote) != std::string::npos) return std::nullopt;
  return notation_.quote_bytes + text + notation_.quote_bytes;
}

std::optional<std::string> JsonText::single_quoted(const std::string& text) const {
  if (!notation_.is_python || !characters_within(text, plain_characters().without({{'\'', '\''}})))
    return std::nullopt;
  return "'" + text + "'";
}

std::optional<std::string> JsonText::spelled_name(const std::string& name, std::string json) const {
  if (!is_bare()) return json;
  if (name.empty() || name.find_first_of(" \t\r\n<>=\"'(){}[],:") != std::string::npos) return std::nullopt;
  return name;
}

CodePointSet JsonText::bare_characters() const {
  CodePointSet excluded{{static_cast<uint8_t>(notation_.quote[0]), static_cast<uint8_t>(notation_.quote[0])}};
  if (notation_.is_one_line) excluded.add('\n', '\n');
  return excluded.negated();
}

GrammarExpr JsonText::other_name(const std::vector<std::string>& names) {
  const CodePointSet& set = is_bare() ? name_characters() : plain_characters();
  std::vector<std::u32string> known;
  if (is_bare()) known.emplace_back();
  for (const std::string& name : names) {
    if (auto characters = characters_within(name, set)) known.push_back(std::move(*characters));
  }
  const GrammarExpr name = builder_.none_of(known, set);
  return builder_.rule("other name", is_bare() ? name : quoted(name));
}

GrammarExpr JsonText::whitespace() {
  if (is_bare()) return builder_.empty();
  if (whitespace_ < 0) {
    const GrammarExpr indent = builder_.characters({{' ', ' '}, {'\t', '\t'}});
    whitespace_ =
        builder_.choice({builder_.empty(), builder_.literal(" "),
                         builder_.sequence({builder_.literal("\n"), builder_.repeat(indent, 0, kIndent)})});
  }
  return whitespace_;
}

GrammarExpr JsonText::bracketed(std::string_view open, GrammarExpr inside, std::string_view close) {
  return builder_.sequence({builder_.literal(open), whitespace(), inside, builder_.literal(close)});
}

GrammarExpr JsonText::list(GrammarExpr part, int32_t min, int32_t max) {
  if (max == 0) return builder_.empty();
  const GrammarExpr more = builder_.sequence({comma(), part});
  const int32_t less = min > 0 ? min - 1 : 0;
  const GrammarExpr some = builder_.sequence(
      {part, builder_.repeat(more, less, max == kUnbounded ? kUnbounded : max - 1), whitespace()});
  return min > 0 ? some : builder_.optional(some);
}

GrammarExpr JsonText::value() {
  if (value_ < 0) {
    const int32_t rule = builder_.add_rule("any JSON value");
    value_ = builder_.reference(rule);
    builder_.define(rule, builder_.choice({object(), array(), string(), number(), boolean(),
                                           builder_.literal(null_word())}));
  }
  return value_;
}

GrammarExpr JsonText::object() {
  if (object_ < 0) {
    const int32_t rule = builder_.add_rule("any JSON object");
    object_ = builder_.reference(rule);
    const GrammarExpr name = is_bare() ? other_name({}) : string();
    const GrammarExpr pair = builder_.rule("any member", member(name, value()));
    builder_.define(rule, members(list(pair, 0, kUnbounded)));
  }
  return object_;
}

GrammarExpr JsonText::array() {
  if (array_ < 0) {
    const int32_t rule = builder_.add_rule("any JSON array");
    array_ = builder_.reference(rule);
    builder_.define(rule, elements(list(value(), 0, kUnbounded)));
  }
  return array_;
}

GrammarExpr JsonText::integer() {
  if (integer_ < 0) {
    const GrammarExpr digit = builder_.characters(digits());
    const GrammarExpr natural = builder_.choice(
        {builder_.literal("0"),
         builder_.sequence({builder_.characters({{'1', '9'}}), builder_.repeat(digit, 0, kDigits - 1)})});
    integer_ =
        builder_.rule("integer", builder_.sequence({builder_.optional(builder_.literal("-")), natural}));
  }
  return integer_;
}

GrammarExpr JsonText::number() {
  if (number_ < 0) {
    const GrammarExpr digit = builder_.characters(digits());
    const GrammarExpr fraction =
        builder_.sequence({builder_.literal("."), builder_.repeat(digit, 1, kDigits)});
    const GrammarExpr exponent =
        builder_.sequence({builder_.characters({{'E', 'E'}, {'e', 'e'}}),
                           builder_.optional(builder_.characters({{'+', '+'}, {'-', '-'}})),
                           builder_.repeat(digit, 1, kExponentDigits)});
    number_ = builder_.rule(
        "number", builder_.sequence({integer(), builder_.optional(fraction), builder_.optional(exponent)}));
  }
  return number_;
}

const CodePointSet& JsonText::plain_characters() {
  static const CodePointSet kSet = CodePointSet{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}.negated();
  return kSet;
}

GrammarExpr JsonText::any_character(char quote) {
  const auto [it, is_new] = any_characters_.try_emplace(quote, -1);
  if (is_new) {
    const auto hex = [&](const CodePointSet& set) { return builder_.characters(set); };
    const CodePointSet all{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    const CodePointSet d{{'D', 'D'}, {'d', 'd'}};
    const GrammarExpr any = hex(all);
    // Surrogates are allowed in pairs only.
    const GrammarExpr unpaired = builder_.choice({builder_.sequence({hex(all.without(d)), any, any, any}),
                                                  builder_.sequence({hex(d), hex({{'0', '7'}}), any, any})});
    const GrammarExpr pair =
        builder_.sequence({hex(d), hex({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), any, any,
                           builder_.literal("\\u"), hex(d), hex({{'C', 'F'}, {'c', 'f'}}), any, any});
    CodePointSet simple;
    // Python knows no escaped slash.
    const std::string_view letters = notation_.is_python ? "\"'\\bfnrt" : "\"\\/bfnrt";
    for (const char c : letters) simple.add(c, c);
    const GrammarExpr escape = builder_.sequence(
        {builder_.literal("\\"),
         builder_.choice({builder_.characters(simple),
                          builder_.sequence({builder_.literal("u"), builder_.choice({unpaired, pair})})})});
    CodePointSet plain = plain_characters();
    if (quote != '"') plain.add('"', '"');
    const auto mark = static_cast<uint32_t>(quote);
    it->second = builder_.choice({builder_.characters(plain.without({{mark, mark}})), escape});
  }
  return it->second;
}

GrammarExpr JsonText::quoted(GrammarExpr inside) {
  if (is_bare()) {
    const GrammarExpr mark = builder_.literal(notation_.quote_bytes);
    return builder_.sequence({mark, inside, mark});
  }
  return builder_.sequence({builder_.literal("\""), inside, builder_.literal("\"")});
}

GrammarExpr JsonText::string(int32_t min, int32_t max) {
  const auto [it, is_new] = strings_.try_emplace({min, max}, -1);
  if (!is_new) return it->second;
  const bool is_limited = min > 0 || max != kUnbounded;
  if (is_bare()) {
    const GrammarExpr limited = builder_.repeat(builder_.characters(bare_characters()), min, max);
    it->second =
        builder_.rule("string", quoted(is_limited ? limited : builder_.text_without(notation_.quote)));
    return it->second;
  }
  const GrammarExpr twice = quoted(builder_.repeat(any_character('"'), min, max));
  if (!notation_.is_python) return it->second = builder_.rule("string", twice);
  const GrammarExpr mark = builder_.literal("'");
  const GrammarExpr once = builder_.sequence({mark, builder_.repeat(any_character('\''), min, max), mark});
  return it->second = builder_.rule("string", builder_.choice({twice, once}));
}

GrammarExpr JsonText::character(const CodePointSet& set) {
  if (is_bare()) return builder_.characters(set.within(bare_characters()));
  std::vector<GrammarExpr> choices = {builder_.characters(set.within(plain_characters()))};
  std::vector<std::string> escapes;
  static constexpr std::array<std::pair<char, const char*>, 7> kShort = {{{'"', "\\\""},
                                                                          {'\\', "\\\\"},
                                                                          {'\b', "\\b"},
                                                                          {'\f', "\\f"},
                                                                          {'\n', "\\n"},
                                                                          {'\r', "\\r"},
                                                                          {'\t', "\\t"}}};
  CodePointSet short_ones;
  for (const auto& [character, text] : kShort) {
    short_ones.add(character, character);
    if (set.contains(character)) escapes.emplace_back(text);
  }
  for (uint32_t control = 0; control < 0x20; ++control) {
    if (!set.contains(control) || short_ones.contains(control)) continue;
    char text[8];
    std::snprintf(text, sizeof(text), "\\u%04x", static_cast<unsigned>(control));
    escapes.emplace_back(text);
  }
  if (!escapes.empty()) choices.push_back(builder_.one_of(std::move(escapes)));
  return builder_.choice(std::move(choices));
}

GrammarExpr json_object_expression(GrammarBuilder& builder) { return JsonText(builder).object(); }

SharedGrammar json_object_grammar() {
  static const SharedGrammar kGrammar = [] {
    GrammarBuilder builder;
    return builder.build(json_object_expression(builder)).value();
  }();
  return kGrammar;
}

}  // namespace outrider
