// SPDX-License-Identifier: Apache-2.0
#include "grammar/token_masks.h"

#include <algorithm>
#include <utility>

namespace outrider {
namespace {

using State = ByteAutomaton::State;
constexpr State kDead = ByteAutomaton::kDead;

constexpr size_t kMaxCachedBytes = size_t{16} << 20;  // limit of the masks, and of the local masks
// Limit of the items of the states that the walk for one mask reaches. It does not count cached results as
// cheaper, so that a mask depends on its state only.
constexpr size_t kMaxWork = 100'000;

}  // namespace

std::shared_ptr<const TokenMask> TokenMasks::find(State state) {
  const State plain = automaton_.canonical(state);
  const auto known = masks_.find(plain);
  if (known != masks_.end()) return known->second;
  if (masks_.size() * trie_->mask_words() * sizeof(uint64_t) > kMaxCachedBytes) masks_.clear();
  auto mask = compute(plain);
  masks_.emplace(plain, mask);
  return mask;
}

std::shared_ptr<const TokenMask> TokenMasks::compute(State state) {
  auto mask = std::make_shared<TokenMask>(trie_->mask_words());
  const std::vector<ByteAutomaton::Item> items(automaton_.items(state).begin(),
                                               automaton_.items(state).end());
  std::vector<int32_t> open;
  bool is_too_large = false;
  for (size_t begin = 0; begin < items.size() && !is_too_large;) {
    size_t end = begin + 1;
    while (end < items.size() && items[end].stacks == items[begin].stacks) ++end;
    const ByteAutomaton::LocalState above = automaton_.local_state({items.data() + begin, end - begin});
    if (above.state == kDead) {
      is_too_large = true;
      break;
    }
    const Local& found = local(above);
    is_too_large = found.is_too_large;
    for (size_t i = 0; i < mask->size(); ++i) (*mask)[i] |= found.allowed[i];
    open.insert(open.end(), found.open.begin(), found.open.end());
    begin = end;
  }
  std::sort(open.begin(), open.end());
  ++walk_;
  work_ = 0;
  int32_t done = 0;  // end of the subtrees done; a later subtree may lie within an earlier one
  for (const int32_t node : open) {
    if (is_too_large) break;
    if (node < done) continue;
    done = trie_->subtree_end(node);
    is_too_large = !walk(before(state, node), node, *mask);
  }
  if (is_too_large) {
    std::fill(mask->begin(), mask->end(), 0);
    add_single_bytes(state, *mask);
  }
  return mask;
}

const TokenMasks::Local& TokenMasks::local(const ByteAutomaton::LocalState& above) {
  const int64_t key = static_cast<int64_t>(above.state) << 32 | above.horizon;
  const auto known = local_.find(key);
  if (known != local_.end()) return known->second;
  if (local_.size() * trie_->mask_words() * sizeof(uint64_t) > kMaxCachedBytes) local_.clear();
  Local found;  // complete before it is kept, because a walk may run out of memory
  found.allowed.assign(trie_->mask_words(), 0);
  found.is_too_large = !walk_locally(above, found);
  return local_.emplace(key, std::move(found)).first->second;
}

// Counts the work of a state that this walk reaches for the first time. Returns false if the limit is
// exceeded.
bool TokenMasks::meet(State state) {
  if (static_cast<size_t>(state) >= met_in_.size()) met_in_.resize(2 * automaton_.state_count(), 0);
  if (met_in_[state] == walk_) return true;
  met_in_[state] = walk_;
  work_ += 1 + automaton_.items(state).size();
  return work_ <= kMaxWork;
}

bool TokenMasks::walk_locally(const ByteAutomaton::LocalState& above, Local& found) {
  ++walk_;
  work_ = 0;
  path_[0] = {above.state, false};
  for (int32_t node = 1; node < trie_->node_count();) {
    const int depth = trie_->depth(node);
    const Step before = path_[depth - 1];
    const State next = depth > above.horizon ? kDead : automaton_.advance(before.state, trie_->byte(node));
    if (next == kDead) {
      if (before.has_escaped || depth > above.horizon) found.open.push_back(node);
      node = trie_->subtree_end(node);
      continue;
    }
    if (next != before.state && !meet(next)) return false;
    add_tokens(node, found.allowed);
    path_[depth] = {next, before.has_escaped || automaton_.may_escape(next)};
    ++node;
  }
  return true;
}

bool TokenMasks::walk(State state, int32_t subtree, TokenMask& mask) {
  if (state == kDead) return true;
  const int top = trie_->depth(subtree) - 1;
  path_[top].state = state;
  const int32_t end = trie_->subtree_end(subtree);
  for (int32_t node = subtree; node < end;) {
    const int depth = trie_->depth(node);
    const State next = automaton_.advance(path_[depth - 1].state, trie_->byte(node));
    if (next == kDead) {
      node = trie_->subtree_end(node);
      continue;
    }
    if (!meet(next)) return false;
    add_tokens(node, mask);
    path_[depth].state = next;
    ++node;
  }
  return true;
}

// The state after the bytes that lead to `node`'s parent.
State TokenMasks::before(State state, int32_t node) {
  std::vector<uint8_t> bytes;
  for (int32_t above = trie_->parent(node); above > 0; above = trie_->parent(above)) {
    bytes.push_back(trie_->byte(above));
  }
  for (size_t i = bytes.size(); i-- > 0 && state != kDead;) state = automaton_.advance(state, bytes[i]);
  return state;
}

void TokenMasks::add_single_bytes(State state, TokenMask& mask) const {
  for (int32_t child = 1; child < trie_->node_count(); child = trie_->subtree_end(child)) {
    if (automaton_.advance(state, trie_->byte(child)) != kDead) add_tokens(child, mask);
  }
}

void TokenMasks::add_tokens(int32_t node, TokenMask& mask) const {
  for (const TokenId token : trie_->tokens(node)) mask[token / 64] |= uint64_t{1} << (token % 64);
}

}  // namespace outrider
