// SPDX-License-Identifier: Apache-2.0
// Parses llama.cpp's GBNF: name ::= alternatives. An alternative is a sequence of "literals", [classes], .,
// names and (groups), each optionally followed by * + ? or {m,n}; # starts a comment.
#include <map>
#include <optional>

#include "base/quote.h"
#include "grammar/grammar_builder.h"
#include "grammar/quantifier.h"
#include "grammar/text_scanner.h"

namespace outrider {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class GbnfParser {
 public:
  GbnfParser(GrammarBuilder& builder, std::string_view text) : in_(text), builder_(builder) {}

  Result<GrammarExpr> run() {
    skip_space(true);
    while (!in_.at_end()) {
      OUTRIDER_RETURN_IF_ERROR(parse_rule());
      skip_space(true);
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) {
      return input_error("grammar: there is no rule \"root\", where every text begins");
    }
    for (const auto& [name, rule] : rules_) {
      if (builder_.rules()[rule.index].body < 0) {
        return input_error("grammar " + rule.place + ": rule " + quote(name) + " is not defined");
      }
    }
    return builder_.reference(root->second.index);
  }

 private:
  struct NamedRule {
    int32_t index = 0;
    std::string place;  // line and column of the first mention
  };

  Error error(const std::string& problem) const {
    return input_error("grammar " + in_.line_and_column() + ": " + problem);
  }
  Error expected(const std::string& what) const {
    const std::string found = in_.at_end() ? "the end" : quote(in_.rest().substr(0, 1));
    return error("expected " + what + ", found " + found);
  }

  void skip_space(bool over_lines) {
    for (;;) {
      const char c = in_.peek();
      if (in_.at_end()) return;
      if (c == '#') {
        while (!in_.at_end() && in_.peek() != '\n') in_.skip();
      } else if (c == ' ' || c == '\t' || (over_lines && (c == '\n' || c == '\r'))) {
        in_.skip();
      } else {
        return;
      }
    }
  }

  // An alternative may start on a later line.
  void skip_to_alternative() {
    const TextScanner before = in_;
    skip_space(true);
    if (in_.peek() != '|') in_ = before;
  }

  Result<int32_t> rule_named(std::string name) {
    auto found = rules_.find(name);
    if (found == rules_.end()) {
      const int32_t index = builder_.add_rule(name);
      found = rules_.emplace(std::move(name), NamedRule{index, in_.line_and_column()}).first;
    }
    return found->second.index;
  }

  std::string name() {
    std::string name;
    for (; is_name_character(in_.peek()); in_.skip()) name += in_.peek();
    return name;
  }

  Status parse_rule() {
    const TextScanner start = in_;
    const std::string rule_name = name();
    if (rule_name.empty()) return expected("the name of a rule");
    skip_space(false);
    if (!in_.take("::=")) return expected("::= after the name of a rule");
    skip_space(true);
    OUTRIDER_TRY(const int32_t rule, rule_named(rule_name));
    if (builder_.rules()[rule].body >= 0) {
      in_ = start;
      return error("rule " + quote(rule_name) + " is defined twice");
    }
    OUTRIDER_TRY(const GrammarExpr body, parse_alternatives(0));
    builder_.define(rule, body);
    if (!in_.at_end() && in_.peek() != '\n' && in_.peek() != '\r') return expected("the end of the rule");
    return {};
  }

  Result<GrammarExpr> parse_alternatives(int depth) {
    if (depth > GrammarLimits::kNesting) {
      return error("groups nest deeper than " + std::to_string(GrammarLimits::kNesting));
    }
    std::vector<GrammarExpr> choices;
    for (;;) {
      OUTRIDER_TRY(const GrammarExpr sequence, parse_sequence(depth));
      choices.push_back(sequence);
      if (depth == 0) skip_to_alternative();
      if (!in_.take("|")) return builder_.choice(std::move(choices));
      skip_space(true);
    }
  }

  Result<GrammarExpr> parse_sequence(int depth) {
    std::vector<GrammarExpr> parts;
    for (;;) {
      OUTRIDER_TRY(const std::optional<GrammarExpr> part, parse_element(depth));
      if (!part.has_value()) return builder_.sequence(std::move(parts));
      if (const std::string problem = builder_.excess(); !problem.empty()) {
        return error("the grammar " + problem);
      }
      skip_space(depth > 0);
      OUTRIDER_TRY(const GrammarExpr repeated, parse_repetitions(*part, depth));
      parts.push_back(repeated);
    }
  }

  // The next part of a sequence; nullopt at its end.
  Result<std::optional<GrammarExpr>> parse_element(int depth) {
    using Found = std::optional<GrammarExpr>;
    if (in_.take("\"")) {
      OUTRIDER_TRY(const GrammarExpr literal, parse_literal());
      return Found(literal);
    }
    if (in_.take("[")) {
      OUTRIDER_TRY(const GrammarExpr set, parse_class());
      return Found(set);
    }
    if (in_.take(".")) return Found(builder_.characters(CodePointSet().negated()));
    if (in_.take("(")) {
      skip_space(true);
      OUTRIDER_TRY(const GrammarExpr group, parse_alternatives(depth + 1));
      if (!in_.take(")")) return expected("\")\" at the end of a group");
      return Found(group);
    }
    if (in_.peek() == '<') return error("tokens by number or name are not supported; write their text");
    if (is_name_character(in_.peek())) {
      OUTRIDER_TRY(const int32_t rule, rule_named(name()));
      return Found(builder_.reference(rule));
    }
    return Found(std::nullopt);
  }

  Result<GrammarExpr> parse_repetitions(GrammarExpr part, int depth) {
    for (int count = 0;; ++count) {
      OUTRIDER_TRY(const std::optional<Quantifier> found,
                   take_quantifier(
                       in_, [&] { skip_space(false); }, [&](const char* what) { return expected(what); },
                       [&](const std::string& text) { return error(text); }));
      if (!found) return part;
      if (count >= GrammarLimits::kNesting) return error("too many repetitions of one part");
      part = builder_.repeat(part, found->min, found->max);
      skip_space(depth > 0);
    }
  }

  Result<GrammarExpr> parse_literal() {
    std::string text;
    while (!in_.take("\"")) {
      if (in_.at_end() || in_.peek() == '\n') return expected("\" at the end of a literal");
      OUTRIDER_TRY(const uint32_t character, parse_character());
      utf8::append(character, text);
    }
    return builder_.literal(text);
  }

  Result<GrammarExpr> parse_class() {
    const bool is_negated = in_.take("^");
    CodePointSet set;
    while (!in_.take("]")) {
      if (in_.at_end() || in_.peek() == '\n') return expected("] at the end of a class");
      OUTRIDER_TRY(const uint32_t first, parse_character());
      uint32_t last = first;
      if (in_.peek() == '-' && in_.peek(1) != ']') {
        in_.skip();
        if (in_.at_end()) return expected("] at the end of a class");
        OUTRIDER_TRY(last, parse_character());
      }
      if (last < first) return error("a range of a class must not go backwards");
      set.add(first, last);
    }
    if (set.is_empty() && !is_negated) return error("a class without characters fits nothing");
    return builder_.characters(is_negated ? set.negated() : set);
  }

  Result<uint32_t> parse_character() {
    if (!in_.take("\\")) return in_.next();
    const char kind = in_.peek();
    if (!in_.at_end()) in_.skip();
    const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits > 0) {
      const auto value = in_.hexadecimal(digits);
      if (!value.has_value()) return expected(std::to_string(digits) + " hexadecimal digits");
      if (*value > CodePointSet::kLast || (*value >= 0xD800 && *value <= 0xDFFF)) {
        return error("not a Unicode character");
      }
      return *value;
    }
    switch (kind) {
      case 'n':
        return uint32_t{'\n'};
      case 'r':
        return uint32_t{'\r'};
      case 't':
        return uint32_t{'\t'};
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<uint32_t>(kind);
      default:
        return error(
            "unknown escape; known: \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH \\UHHHHHHHH");
    }
  }

  TextScanner in_;
  GrammarBuilder& builder_;
  std::map<std::string, NamedRule> rules_;
};

}  // namespace

Result<GrammarExpr> gbnf_expression(GrammarBuilder& builder, std::string_view text) {
  if (text.size() > GrammarLimits::kTextBytes) {
    return input_error("grammar: " + std::to_string(text.size()) + " bytes, at most " +
                       std::to_string(GrammarLimits::kTextBytes));
  }
  if (utf8::valid_prefix(text) != text.size()) return input_error("grammar: not valid UTF-8");
  return GbnfParser(builder, text).run();
}

Result<SharedGrammar> parse_gbnf(std::string_view text) {
  GrammarBuilder builder;
  OUTRIDER_TRY(const GrammarExpr root, gbnf_expression(builder, text));
  return builder.build(root);
}

}  // namespace outrider
