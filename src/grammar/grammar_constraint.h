// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/token_trie.h"
#include "outrider/token_constraint.h"

namespace outrider {

// Applies a grammar to the tokens of a vocabulary and caches the states and masks computed so far.
// Thread-safe: several sequences may share it, one at a time.
class GrammarMatcher {
 public:
  // `ending`: tokens that end the output; they are allowed only where the grammar may end.
  static std::shared_ptr<GrammarMatcher> create(std::shared_ptr<const Grammar> grammar,
                                                std::shared_ptr<const TokenTrie> trie,
                                                std::vector<TokenId> ending);
  virtual ~GrammarMatcher() = default;
  // Memory in use. A matcher never shrinks; replace it when it becomes too large for its cache.
  virtual size_t bytes() const = 0;
  virtual std::shared_ptr<TokenConstraint> make_constraint() = 0;
};

// Makes a constraint with its own matcher.
std::shared_ptr<TokenConstraint> make_constraint(std::shared_ptr<const Grammar> grammar,
                                                 std::shared_ptr<const TokenTrie> trie,
                                                 std::vector<TokenId> ending);

}  // namespace outrider
