// SPDX-License-Identifier: Apache-2.0
#include "grammar/regex_parser.h"

#include <optional>
#include <string>

#include "base/quote.h"
#include "grammar/quantifier.h"
#include "grammar/text_scanner.h"

namespace outrider {
namespace {

const CodePointSet& digits() {
  static const CodePointSet kSet{{'0', '9'}};
  return kSet;
}
const CodePointSet& word() {
  static const CodePointSet kSet{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return kSet;
}
const CodePointSet& space() {
  static const CodePointSet kSet{{'\t', '\r'}, {' ', ' '}};
  return kSet;
}

class RegexParser {
 public:
  RegexParser(GrammarBuilder& builder, std::string_view pattern, const RegexOptions& options)
      : builder_(builder), options_(options), in_(pattern) {}

  Result<GrammarExpr> run() {
    OUTRIDER_TRY(const GrammarExpr whole, parse_alternatives(0));
    if (!in_.at_end()) return error("\")\" without \"(\"; write \\) for the character");
    return whole;
  }

 private:
  Error error(const std::string& problem) const {
    return input_error("regex position " + std::to_string(in_.position()) + ": " + problem);
  }

  GrammarExpr character(const CodePointSet& set) {
    return options_.character ? options_.character(set) : builder_.characters(set);
  }

  GrammarExpr anything() {
    return builder_.repeat(character(CodePointSet().negated()), 0, GrammarBuilder::kUnbounded);
  }

  Result<GrammarExpr> parse_alternatives(int depth) {
    if (depth > GrammarLimits::kNesting) {
      return error("groups nest deeper than " + std::to_string(GrammarLimits::kNesting));
    }
    std::vector<GrammarExpr> choices;
    do {
      OUTRIDER_TRY(const GrammarExpr sequence, parse_sequence(depth));
      choices.push_back(sequence);
    } while (in_.take("|"));
    return builder_.choice(std::move(choices));
  }

  // ^ is allowed first and $ last in an alternative of the whole pattern.
  Result<GrammarExpr> parse_sequence(int depth) {
    std::vector<GrammarExpr> parts;
    const bool is_start = depth == 0 && in_.take("^");
    if (options_.is_search && depth == 0 && !is_start) parts.push_back(anything());
    bool is_end = false;
    while (!in_.at_end() && in_.peek() != '|' && in_.peek() != ')') {
      if (const std::string problem = builder_.excess(); !problem.empty()) {
        return error("the pattern " + problem);
      }
      if (depth == 0 && in_.peek() == '$' && (in_.peek(1) == '|' || in_.rest().size() == 1)) {
        in_.skip();
        is_end = true;
        break;
      }
      OUTRIDER_TRY(const GrammarExpr atom, parse_atom(depth));
      OUTRIDER_TRY(const GrammarExpr repeated, parse_quantifier(atom));
      parts.push_back(repeated);
    }
    if (options_.is_search && depth == 0 && !is_end) parts.push_back(anything());
    return builder_.sequence(std::move(parts));
  }

  Result<GrammarExpr> parse_atom(int depth) {
    switch (in_.peek()) {
      case '(':
        return parse_group(depth);
      case '[': {
        OUTRIDER_TRY(const CodePointSet set, parse_class());
        return character(set);
      }
      case '.':
        in_.skip();
        return character(CodePointSet{{'\n', '\n'}}.negated());
      case '\\': {
        OUTRIDER_TRY(const CodePointSet set, parse_escape(false));
        return character(set);
      }
      case '^':
      case '$':
        return error("^ and $ may only stand at the start and the end of the pattern or of its alternatives");
      case '*':
      case '+':
      case '?':
      case '{':
        return error("nothing to repeat; write a backslash before the character itself");
      default: {
        const uint32_t value = in_.next();
        return character({{value, value}});
      }
    }
  }

  Result<GrammarExpr> parse_group(int depth) {
    in_.skip();
    if (in_.take("?")) {
      if (in_.rest().starts_with("<=") || in_.rest().starts_with("<!") || in_.peek() == '=' ||
          in_.peek() == '!') {
        return error("look-around is not supported");
      }
      if (in_.take("P<") || in_.take("<")) {
        while (in_.peek() == '_' || word().contains(static_cast<uint8_t>(in_.peek()))) in_.skip();
        if (!in_.take(">")) return error("expected > after the name of a group");
      } else if (!in_.take(":")) {
        return error("only (...), (?:...) and (?<name>...) are supported groups");
      }
    }
    OUTRIDER_TRY(const GrammarExpr group, parse_alternatives(depth + 1));
    if (!in_.take(")")) return error("expected \")\" at the end of a group");
    return group;
  }

  Result<GrammarExpr> parse_quantifier(GrammarExpr atom) {
    const auto malformed = [&](const char*) {
      return error("expected {m}, {m,} or {m,n}; write \\{ for the character");
    };
    OUTRIDER_TRY(const std::optional<Quantifier> found,
                 take_quantifier(
                     in_, [] {}, malformed, [&](const std::string& text) { return error(text); }));
    if (!found) return atom;
    in_.take("?");  // lazy: the same texts match
    if (in_.peek() == '+') return error("possessive quantifiers are not supported");
    if (in_.peek() == '*' || in_.peek() == '?' || in_.peek() == '{') {
      return error("a quantifier after a quantifier; put the first in a group");
    }
    return builder_.repeat(atom, found->min, found->max);
  }

  Result<CodePointSet> parse_class() {
    in_.skip();
    const bool is_negated = in_.take("^");
    CodePointSet set;
    if (in_.peek() == ']') return error("a class without characters; write \\] for the character");
    while (!in_.take("]")) {
      if (in_.at_end()) return error("expected ] at the end of a class");
      bool is_single = true;
      OUTRIDER_TRY(const CodePointSet first, parse_class_member(is_single));
      if (in_.peek() != '-' || in_.peek(1) == ']' || in_.peek(1) == '\0') {
        set.add(first);
        continue;
      }
      in_.skip();
      bool is_single_too = true;
      OUTRIDER_TRY(const CodePointSet last, parse_class_member(is_single_too));
      if (!is_single || !is_single_too) return error("a range of a class goes from character to character");
      if (last.ranges()[0].first < first.ranges()[0].first) {
        return error("a range of a class must not go backwards");
      }
      set.add(first.ranges()[0].first, last.ranges()[0].first);
    }
    if (is_negated) set = set.negated();
    if (set.is_empty()) return error("a class that no character fits");
    return set;
  }

  Result<CodePointSet> parse_class_member(bool& is_single) {
    if (in_.peek() == '\\') {
      const char kind = in_.peek(1);
      is_single = std::string_view("dDwWsS").find(kind) == std::string_view::npos;
      return parse_escape(true);
    }
    const uint32_t value = in_.next();
    return CodePointSet{{value, value}};
  }

  // The set of \d, \w, \s and their negations; nullopt for other letters.
  static std::optional<CodePointSet> named_class(char kind) {
    switch (kind) {
      case 'd':
        return digits();
      case 'D':
        return digits().negated();
      case 'w':
        return word();
      case 'W':
        return word().negated();
      case 's':
        return space();
      case 'S':
        return space().negated();
      default:
        return std::nullopt;
    }
  }

  static CodePointSet single(uint32_t value) { return CodePointSet{{value, value}}; }

  Result<CodePointSet> parse_escape(bool in_class) {
    in_.skip();
    if (in_.at_end()) return error("a backslash at the end");
    const char kind = in_.peek();
    if (static_cast<uint8_t>(kind) < 0x80) in_.skip();
    if (const auto named = named_class(kind)) return *named;
    constexpr std::string_view kLetters = "nrtfv", kControls = "\n\r\t\f\v";
    if (const size_t i = kLetters.find(kind); i != kLetters.npos)
      return single(static_cast<uint8_t>(kControls[i]));
    switch (kind) {
      case '0':
        if (in_.peek() >= '0' && in_.peek() <= '9') return error("octal escapes are not supported");
        return single(0);
      case 'x':
        return parse_code(2);
      case 'u':
        if (in_.take("{")) return parse_braced_code();
        return parse_code(4);
      case 'b':
        if (in_class) return single('\b');
        return error("word boundaries (\\b) are not supported");
      default:
        break;
    }
    if (kind >= '1' && kind <= '9') return error("back-references are not supported");
    if (static_cast<uint8_t>(kind) >= 0x80 || word().contains(static_cast<uint8_t>(kind))) {
      return error("unknown escape " + quote(in_.rest().empty() ? "\\" : std::string("\\") + kind));
    }
    return single(static_cast<uint8_t>(kind));
  }

  Result<CodePointSet> parse_code(int digits) {
    const auto value = in_.hexadecimal(digits);
    if (!value.has_value()) return error("expected " + std::to_string(digits) + " hexadecimal digits");
    return character_of(*value);
  }

  Result<CodePointSet> parse_braced_code() {
    for (int digits = 6; digits > 0; --digits) {
      if (in_.peek(digits) != '}') continue;
      const auto value = in_.hexadecimal(digits);
      if (!value.has_value()) break;
      in_.skip();
      return character_of(*value);
    }
    return error("expected \\u{...} with one to six hexadecimal digits");
  }

  Result<CodePointSet> character_of(uint32_t value) const {
    const CodePointSet set = value <= CodePointSet::kLast ? CodePointSet{{value, value}} : CodePointSet();
    if (set.is_empty()) return error("not a Unicode character");
    return set;
  }

  GrammarBuilder& builder_;
  const RegexOptions& options_;
  TextScanner in_;
};

}  // namespace

Result<GrammarExpr> regex_expression(GrammarBuilder& builder, std::string_view pattern,
                                     const RegexOptions& options) {
  if (pattern.size() > GrammarLimits::kTextBytes) {
    return input_error("regex: " + std::to_string(pattern.size()) + " bytes, at most " +
                       std::to_string(GrammarLimits::kTextBytes));
  }
  if (utf8::valid_prefix(pattern) != pattern.size()) return input_error("regex: not valid UTF-8");
  return RegexParser(builder, pattern, options).run();
}

Result<GrammarExpr> regex_expression(GrammarBuilder& builder, std::string_view pattern) {
  return regex_expression(builder, pattern, RegexOptions{});
}

Result<SharedGrammar> grammar_of_regex(std::string_view pattern) {
  GrammarBuilder builder;
  OUTRIDER_TRY(const GrammarExpr root, regex_expression(builder, pattern));
  return builder.build(root);
}

}  // namespace outrider
