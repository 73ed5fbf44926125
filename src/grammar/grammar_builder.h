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

// Collects expressions and rules over bytes and compiles them into a Grammar. An expression may be used many
// times.
class GrammarBuilder {
 public:
  enum class Kind : uint8_t { kBytes, kLiteral, kCharacters, kSequence, kChoice, kRepeat, kReference };
  struct Node {
    Kind kind = Kind::kSequence;
    int32_t index = 0;                    // index of the byte set, literal, code point set or rule
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
  GrammarExpr nothing() { return choice({}); }  // fits no text
  GrammarExpr bytes(const ByteSet& set);        // one byte
  GrammarExpr literal(std::string_view bytes);
  GrammarExpr characters(const CodePointSet& set);  // one character, in UTF-8
  GrammarExpr sequence(std::vector<GrammarExpr> parts);
  GrammarExpr choice(std::vector<GrammarExpr> parts);
  GrammarExpr repeat(GrammarExpr part, int32_t min, int32_t max);
  GrammarExpr optional(GrammarExpr part) { return repeat(part, 0, 1); }
  // One of these texts; common prefixes are shared.
  GrammarExpr one_of(std::vector<std::string> texts);
  // Strings of these characters that equal none of `texts`. Precondition: the texts consist of these
  // characters.
  GrammarExpr none_of(const std::vector<std::u32string>& texts, const CodePointSet& characters);

  // Strings that do not contain `text`, which is not empty.
  GrammarExpr text_without(std::string_view text);

  int32_t add_rule(std::string name);
  void define(int32_t rule, GrammarExpr body) { rules_[rule].body = body; }
  GrammarExpr reference(int32_t rule);
  GrammarExpr rule(std::string name, GrammarExpr body);  // a reference to a new rule

  // The reason why build() will fail for lack of space or time ("is too large: ..."), empty if there is none.
  // Functions that may work for long check it now and then and stop.
  std::string excess() const;

  // Errors: a rule without definition, left recursion, a root that no finite text fits, a grammar that is too
  // large.
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
  double last_ms_;  // deadline, on the clock of now_ms()
  std::vector<Node> nodes_;
  std::vector<Rule> rules_;
  std::vector<ByteSet> byte_sets_;
  std::vector<std::string> literals_;
  std::vector<CodePointSet> character_sets_;
};

}  // namespace outrider
