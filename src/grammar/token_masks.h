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

// Which tokens a state lets come. What no stack decides is found once for each place in the grammar; what
// leaves the procedure in the middle of a token is looked up stack by stack.
class TokenMasks {
 public:
  TokenMasks(ByteAutomaton& automaton, std::shared_ptr<const TokenTrie> trie)
      : automaton_(automaton), trie_(std::move(trie)), path_(trie_->longest() + 1) {}

  // Precondition: not kDead. Where a grammar has too many ways to read a text, only tokens of one byte.
  std::shared_ptr<const TokenMask> find(ByteAutomaton::State state);

  size_t bytes() const { return (masks_.size() + local_.size()) * trie_->mask_words() * sizeof(uint64_t); }

 private:
  // Of a local state: tokens that come whatever is below, and subtrees of the trie that it depends on.
  struct Local {
    TokenMask allowed;
    std::vector<int32_t> open;
    bool is_too_large = false;
  };

  std::shared_ptr<const TokenMask> compute(ByteAutomaton::State state);
  const Local& local(const ByteAutomaton::LocalState& above);
  // Adds the tokens of `subtree` that may come from `state`, which stands before the subtree's first byte. Of
  // a local state, `open` gathers what it cannot tell. False: too large.
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
  // Of the walk under way: by depth, the state and whether it has escaped; and what it has cost.
  struct Step {
    ByteAutomaton::State state = ByteAutomaton::kDead;
    bool has_escaped = false;
  };
  std::vector<Step> path_;
  std::vector<int32_t> met_in_;  // by state: the last walk that met it
  int32_t walk_ = 0;
  size_t work_ = 0;
};

}  // namespace outrider
