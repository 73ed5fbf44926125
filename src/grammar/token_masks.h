// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "grammar/byte_automaton.h"
#include "grammar/token_trie.h"

namespace outrider {

using TokenMask = std::vector<uint64_t>;  // bit t % 64 of word t / 64: token t

// Computes and caches which tokens are allowed in a state. Tokens that stay within the current procedure do
// not depend on the stack and are computed once per place in the grammar (local masks). Tokens that leave the
// procedure in their middle are checked per state.
class TokenMasks {
 public:
  TokenMasks(ByteAutomaton& automaton, std::shared_ptr<const TokenTrie> trie)
      : automaton_(automaton), trie_(std::move(trie)), path_(trie_->longest() + 1) {}

  // The mask of allowed tokens. If the text has too many derivations, only tokens of one byte are allowed.
  // Precondition: state != kDead.
  std::shared_ptr<const TokenMask> find(ByteAutomaton::State state);

  size_t bytes() const { return (masks_.size() + local_.size()) * trie_->mask_words() * sizeof(uint64_t); }

 private:
  // The result for a local state: tokens allowed above any stack, and the subtrees of the trie that depend on
  // the stack.
  struct Local {
    TokenMask allowed;
    std::vector<int32_t> open;
    bool is_too_large = false;
  };

  std::shared_ptr<const TokenMask> compute(ByteAutomaton::State state);
  const Local& local(const ByteAutomaton::LocalState& above);
  // Adds the tokens of `subtree` that are allowed from `state`, the state before the subtree's first byte.
  // Returns false if the limit of work is reached. walk_locally() collects the subtrees that depend on the
  // stack in found.open.
  bool walk(ByteAutomaton::State state, int32_t subtree, TokenMask& mask);
  bool walk_locally(const ByteAutomaton::LocalState& above, Local& found);
  bool meet(ByteAutomaton::State state);
  ByteAutomaton::State before(ByteAutomaton::State state, int32_t node);
  void add_single_bytes(ByteAutomaton::State state, TokenMask& mask) const;
  void add_tokens(int32_t node, TokenMask& mask) const;

  ByteAutomaton& automaton_;
  std::shared_ptr<const TokenTrie> trie_;
  std::unordered_map<ByteAutomaton::State, std::shared_ptr<const TokenMask>> masks_;  // by canonical state
  std::unordered_map<int64_t, Local> local_;  // by local state and horizon
  // The current walk: by depth, the state and whether the walk has returned into the unknown stack.
  struct Step {
    ByteAutomaton::State state = ByteAutomaton::kDead;
    bool has_escaped = false;
  };
  std::vector<Step> path_;
  std::vector<int32_t> met_in_;  // by state: number of the last walk that reached it
  int32_t walk_ = 0;             // number of the current walk
  size_t work_ = 0;              // items visited by it
};

}  // namespace outrider
