// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "grammar/code_points.h"
#include "grammar/grammar.h"

namespace outrider {

using ByteSet = std::bitset<256>;

// Expressions and rules over bytes, to be compiled into a Grammar. An expression may be used many times.
class GrammarBuilder {
 public:
  enum class Kind : uint8_t { kBytes, kLiteral, kCharacters, kSequence, kChoice, kRepeat, kReference };
  struct Node {
    Kind kind = Kind::kSequence;
    int32_t index = 0;                    // of the byte set, literal, code point set or rule
    int32_t min = 0, max = 0;             // kRepeat
    std::vector<GrammarExpr> parts = {};  // kSequence, kChoice, kRepeat
  };
  struct Rule {
    std::string name;
    GrammarExpr body = -1;  // -1: not defined
  };
  static constexpr int32_t kUnbounded = -1;
  static constexpr size_t kMaxExpressions = size_t{1} << 20;

  explicit GrammarBuilder(double seconds = GrammarLimits::kSeconds)
      : seconds_(seconds), last_ms_(now_ms() + 1e3 * seconds) {}

  GrammarExpr empty() { return sequence({}); }
  GrammarExpr nothing() { return choice({}); }  // no text at all fits
  GrammarExpr bytes(const ByteSet& set);        // one byte
  GrammarExpr literal(std::string_view bytes);
  GrammarExpr characters(const CodePointSet& set);  // one character, in UTF-8
  GrammarExpr sequence(std::vector<GrammarExpr> parts);
  GrammarExpr choice(std::vector<GrammarExpr> parts);
  GrammarExpr repeat(GrammarExpr part, int32_t min, int32_t max);
  GrammarExpr optional(GrammarExpr part) { return repeat(part, 0, 1); }
  // One of these texts; common beginnings are shared.
  GrammarExpr one_of(std::vector<std::string> texts);
  // Strings of such characters that none of `texts` equals. The texts are of such characters.
  GrammarExpr none_of(const std::vector<std::u32string>& texts, const CodePointSet& characters);

  int32_t add_rule(std::string name);
  void define(int32_t rule, GrammarExpr body) { rules_[rule].body = body; }
  GrammarExpr reference(int32_t rule);
  GrammarExpr rule(std::string name, GrammarExpr body);  // a new one, referenced

  // Why build() will refuse what is made here, so that there is no need to go on: too many expressions, or
  // too much time ("is too large: ..."); empty: it may not. Who may work for long asks now and then.
  std::string excess() const;

  // Errors: a rule without definition, left recursion, a root that no text fits, too large a grammar.
  Result<std::shared_ptr<const Grammar>> build(GrammarExpr root) const;

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Rule>& rules() const { return rules_; }
  const std::vector<ByteSet>& byte_sets() const { return byte_sets_; }
  const std::vector<std::string>& literals() const { return literals_; }
  const std::vector<CodePointSet>& character_sets() const { return character_sets_; }

 private:
  GrammarExpr add(Node node);
  GrammarExpr one_of_sorted(const std::vector<std::string>& texts, size_t begin, size_t end, size_t skip);

  double seconds_;
  double last_ms_;  // of now_ms()
  std::vector<Node> nodes_;
  std::vector<Rule> rules_;
  std::vector<ByteSet> byte_sets_;
  std::vector<std::string> literals_;
  std::vector<CodePointSet> character_sets_;
};

}  // namespace outrider
