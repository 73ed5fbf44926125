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

// The TokenRules of a request as a constraint, so that they hold at every node of a tree; combined with the
// constraint that the request may also have. A state stands for the number of tokens so far (up to
// min_tokens), the longest beginning of a forbidden sequence that the tokens end with, and the state of the
// other constraint.
class TokenLimits final : public TokenConstraint {
 public:
  struct Rules {
    int64_t vocab_size = 0;
    std::vector<TokenId> allowed = {};                 // empty: all ids
    std::vector<std::vector<TokenId>> forbidden = {};  // sequences, each of one id or more
    int64_t min_tokens = 0;                            // tokens before one of `ends` may come
    std::vector<TokenId> ends = {};
  };
  // inner: may be null.
  TokenLimits(const Rules& rules, std::shared_ptr<TokenConstraint> inner);

  State start() override;
  State advance(State state, TokenId token) override;
  std::span<const uint64_t> allowed(State state) override;
  bool is_complete(State state) override;

 private:
  // A node of the trie of the forbidden sequences, each without its last id.
  struct Beginning {
    std::map<TokenId, int> next;
    int link = 0;                    // the longest other beginning that this one ends with
    std::vector<TokenId> forbidden;  // ids that would complete a sequence
  };
  // State of the inner constraint, tokens so far, index of a Beginning.
  using Key = std::tuple<State, int64_t, int>;

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
  std::vector<uint64_t> words_;  // the last result of allowed()
};

}  // namespace outrider
