// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "outrider/token_constraint.h"

namespace outrider {

// What a request forbids id by id (TokenRules), as an automaton like any other constraint, so that it holds
// at every node of a tree; on top of a constraint that the request may have besides. A state says how many
// tokens came, as long as that matters, how much of which forbidden sequences stands at the end, and the
// other constraint's state.
class TokenLimits final : public TokenConstraint {
 public:
  struct Rules {
    int64_t vocab_size = 0;
    std::vector<TokenId> allowed = {};                 // empty: all
    std::vector<std::vector<TokenId>> forbidden = {};  // sequences, each of one id or more
    int64_t min_tokens = 0;                            // before one of `ends` may come
    std::vector<TokenId> ends = {};
  };
  // inner: may be null.
  TokenLimits(const Rules& rules, std::shared_ptr<TokenConstraint> inner);

  State start() override;
  State advance(State state, TokenId token) override;
  std::span<const uint64_t> allowed(State state) override;
  bool is_complete(State state) override;

 private:
  // The beginnings of forbidden sequences, each without its last id, as a trie with links to the longest
  // other beginning that ends the same.
  struct Beginning {
    std::map<TokenId, int> next;
    int link = 0;
    std::vector<TokenId> forbidden;  // ids that would complete a sequence
  };
  using Key =
      std::tuple<State, int64_t, int>;  // of the inner constraint, tokens so far, index of a Beginning

  void add_forbidden(std::span<const TokenId> sequence);
  void link_beginnings();
  int beginning_after(int beginning, TokenId token) const;
  bool may_come(const Key& key, TokenId token) const;
  State state_of(const Key& key);

  std::shared_ptr<TokenConstraint> inner_;
  std::vector<uint64_t> always_;  // ids that no rule forbids everywhere
  int64_t min_tokens_;
  std::vector<TokenId> ends_;
  std::vector<Beginning> beginnings_{1};
  std::vector<Key> keys_;  // by state
  std::map<Key, State> states_;
  std::vector<uint64_t> words_;  // what allowed() gave last
};

}  // namespace outrider
