// SPDX-License-Identifier: Apache-2.0
// Invariants between calls:
// - A node other than the root has two children or more, or a suffix ends at it; so all strings along an edge
//   occur equally often, and there are at most two nodes per token.
// - The label of a node is taken from a suffix that ends at it or below: from its own suffix when it has no
//   children. Such a node's depth follows from that suffix: it grows with the text by itself, up to
//   max_tree_depth.
// - The suffixes of the growing text from `implicit` on occur elsewhere, too, and end at nodes that the next
//   token moves; longer ones each have a node without children to themselves (Ukkonen 1995).
#include "drafters/suffix/suffix_tree.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr int kRoot = SuffixNodes::kRoot;

}  // namespace

int SuffixTree::add_text() {
  if (free_texts_.empty()) {
    texts_.emplace_back();
    return static_cast<int>(texts_.size() - 1);
  }
  const int text = free_texts_.back();
  free_texts_.pop_back();
  return text;
}

void SuffixTree::append(int text, TokenId token) {
  Text& one = texts_[static_cast<size_t>(text)];
  const int position = one.end();
  one.tokens.push_back(token);
  one.suffixes.emplace_back();
  ++token_count_;
  nodes_.increase(kRoot);
  one.implicit = std::max({one.implicit, one.oldest, position - max_tree_depth_ + 1});
  for (int start = one.implicit; start <= position; ++start) {
    if (!descend({text, start}, token)) one.implicit = start + 1;
  }
}

// Moves the end of a suffix of the growing text by the last token; false when it occurs nowhere else.
bool SuffixTree::descend(SuffixId id, TokenId token) {
  const int position = texts_[static_cast<size_t>(id.text)].end() - 1;
  const int depth = position - id.position;
  const int upper = depth == 0 ? kRoot : suffix(id).node;
  if (upper != kRoot) {
    if (nodes_[upper].count == 1) return false;
    end_no_more(id);
    nodes_[upper].depth = depth;
  }
  int lower = nodes_.child(upper, token);
  if (lower == kNoNode) {
    lower = nodes_.add_child(upper, token);
    nodes_[lower].text = id.text;
    nodes_[lower].start = position;
    end_at(lower, id);
    return false;
  }
  const bool ends_edge = depth_of(lower) == depth + 1;
  if (ends_edge) {
    nodes_.increase(lower);
    end_at(lower, id);
    if (is_needless(upper)) merge_into_only_child(upper);
    return true;
  }
  const TokenId second = this->token(nodes_[lower].text, nodes_[lower].start + 1);
  if (is_needless(upper)) {
    // The node that the suffix leaves serves as the one that it comes to.
    nodes_.rename_child(lower, token, second);
    ++nodes_[lower].start;
    nodes_[upper].depth = depth + 1;
    end_at(upper, id);
    return true;
  }
  const int middle = nodes_.insert_above(lower, token, second);
  nodes_[middle].text = nodes_[lower].text;
  nodes_[middle].start = nodes_[lower].start++;
  nodes_[middle].depth = depth + 1;
  nodes_.increase(middle);
  end_at(middle, id);
  return true;
}

void SuffixTree::forget_oldest(int text) {
  Text& one = texts_[static_cast<size_t>(text)];
  remove_suffix({text, one.oldest});
  ++one.oldest;
  --token_count_;
  const int forgotten = one.oldest - one.base;
  if (2 * forgotten < static_cast<int>(one.tokens.size())) return;
  one.tokens.erase(one.tokens.begin(), one.tokens.begin() + forgotten);
  one.suffixes.erase(one.suffixes.begin(), one.suffixes.begin() + forgotten);
  one.base = one.oldest;
}

void SuffixTree::remove(int text) {
  Text& one = texts_[static_cast<size_t>(text)];
  for (int start = one.oldest; start < one.end(); ++start) remove_suffix({text, start});
  token_count_ -= one.end() - one.oldest;
  one = {};
  free_texts_.push_back(text);
  if (token_count_ == 0) nodes_.clear();
}

void SuffixTree::remove_suffix(SuffixId id) {
  int node = suffix(id).node;
  end_no_more(id);
  while (node != kRoot) {
    const int parent = nodes_[node].parent;
    if (nodes_[node].count == 1) {
      nodes_.remove_child(node, first_token(node));
    } else {
      nodes_.decrease(node);
      if (is_needless(node)) {
        merge_into_only_child(node);
      } else if (SuffixId{nodes_[node].text, nodes_[node].start - nodes_[parent].depth} == id) {
        label_anew(node);
      }
    }
    node = parent;
  }
  nodes_.decrease(kRoot);
}

void SuffixTree::label_anew(int node) {
  SuffixNode& one = nodes_[node];
  const int above = nodes_[one.parent].depth;
  if (one.first_child == kNoNode) {
    one.text = one.first_end.text;
    one.start = one.first_end.position + above;
  } else {
    const SuffixNode& child = nodes_[one.first_child];
    one.text = child.text;
    one.start = child.start - (one.depth - above);
  }
}

bool SuffixTree::is_needless(int node) const {
  return node != kRoot && nodes_[node].first_end.text < 0 && nodes_.has_only_child(node);
}

void SuffixTree::merge_into_only_child(int node) {
  const int child = nodes_[node].first_child;
  const TokenId token = first_token(node);
  const TokenId child_token = first_token(child);
  nodes_[child].start -= edge_length(node);
  nodes_.remove_above_only_child(node, token, child_token);
}

void SuffixTree::end_at(int node, SuffixId id) {
  const SuffixId next = nodes_[node].first_end;
  suffix(id) = {.node = node, .previous = {}, .next = next};
  if (next.text >= 0) suffix(next).previous = id;
  nodes_[node].first_end = id;
}

void SuffixTree::end_no_more(SuffixId id) {
  const Suffix one = suffix(id);
  (one.previous.text < 0 ? nodes_[one.node].first_end : suffix(one.previous).next) = one.next;
  if (one.next.text >= 0) suffix(one.next).previous = one.previous;
}

int SuffixTree::depth_of(int node) const {
  const SuffixNode& one = nodes_[node];
  if (one.first_child != kNoNode || node == kRoot) return one.depth;
  const int start = one.start - nodes_[one.parent].depth;
  return std::min(max_tree_depth_, texts_[static_cast<size_t>(one.text)].end() - start);
}

std::span<const TokenId> SuffixTree::tokens(int text) const {
  const Text& one = texts_[static_cast<size_t>(text)];
  return std::span(one.tokens).subspan(static_cast<size_t>(one.oldest - one.base));
}

SuffixPlace SuffixTree::find(std::span<const TokenId> string) const {
  const auto size = static_cast<int>(string.size());
  SuffixPlace place{kRoot, 0};
  while (place.depth < size) {
    const int child = nodes_.child(place.node, string[static_cast<size_t>(place.depth)]);
    if (child == kNoNode) return {};
    const SuffixNode& node = nodes_[child];
    const int end = std::min(size, depth_of(child));
    for (int depth = place.depth + 1; depth < end; ++depth) {
      if (token(node.text, node.start + depth - place.depth) != string[static_cast<size_t>(depth)]) return {};
    }
    place = {child, end};
  }
  return place;
}

void SuffixTree::find_repeated_ends(int text, std::vector<SuffixPlace>& places) const {
  places.clear();
  const Text& one = texts_[static_cast<size_t>(text)];
  const int first = std::max({one.implicit, one.oldest, one.end() - max_tree_depth_ + 1});
  for (int start = one.end() - 1; start >= first; --start) {
    places.push_back({one.suffixes[static_cast<size_t>(start - one.base)].node, one.end() - start});
  }
}

TokenId SuffixTree::last_token(SuffixPlace place) const {
  const SuffixNode& node = nodes_[place.node];
  return token(node.text, node.start + place.depth - 1 - nodes_[node.parent].depth);
}

SuffixPlace SuffixTree::likeliest_after(SuffixPlace place) const {
  if (place.depth < depth_of(place.node)) return {place.node, place.depth + 1};
  const int child = nodes_[place.node].first_child;
  return child == kNoNode ? SuffixPlace{} : SuffixPlace{child, place.depth + 1};
}

SuffixPlace SuffixTree::next_likeliest(SuffixPlace place) const {
  const SuffixNode& node = nodes_[place.node];
  if (node.next == kNoNode || place.depth != nodes_[node.parent].depth + 1) return {};
  return {node.next, place.depth};
}

size_t SuffixTree::bytes() const {
  size_t bytes = nodes_.bytes();
  for (const Text& text : texts_) {
    bytes +=
        sizeof(Text) + text.tokens.capacity() * sizeof(TokenId) + text.suffixes.capacity() * sizeof(Suffix);
  }
  return bytes;
}

}  // namespace outrider
