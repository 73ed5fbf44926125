// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/token_trie.h"
#include "outrider/token_constraint.h"

namespace outrider {

// A grammar in the tokens of a vocabulary, with all states and masks met so far. May serve several sequences,
// on any threads; while one asks, the others wait.
class GrammarMatcher {
 public:
  // `ending`: tokens that may come where the grammar may end, and nowhere else.
  static std::shared_ptr<GrammarMatcher> create(std::shared_ptr<const Grammar> grammar,
                                                std::shared_ptr<const TokenTrie> trie,
                                                std::vector<TokenId> ending);
  virtual ~GrammarMatcher() = default;
  // Memory in use; beyond what a cache wants to keep, begin with a new one.
  virtual size_t bytes() const = 0;
  virtual std::shared_ptr<TokenConstraint> make_constraint() = 0;
};

// With a matcher of its own.
std::shared_ptr<TokenConstraint> make_constraint(std::shared_ptr<const Grammar> grammar,
                                                 std::shared_ptr<const TokenTrie> trie,
                                                 std::vector<TokenId> ending);

}  // namespace outrider
