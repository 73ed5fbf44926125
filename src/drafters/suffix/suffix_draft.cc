// SPDX-License-Identifier: Apache-2.0
#include "drafters/suffix/suffix_draft.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace outrider {
namespace {

int node_limit(int match, const SuffixDraftLimits& limits) {
  const int max = limits.is_tree ? limits.max_nodes : std::min(limits.max_nodes, limits.max_draft_len);
  return static_cast<int>(std::min<double>(max, std::floor(match * limits.nodes_per_match + 1e-6)));
}

double ratio(int part, int whole) { return static_cast<double>(part) / static_cast<double>(whole); }

}  // namespace

void SuffixSpeculator::improve(const SuffixTree& tree, std::span<const SuffixPlace> places,
                               const SuffixDraftLimits& limits, SuffixDraft& best) {
  for (auto match = static_cast<int>(places.size()); match > 0; --match) {
    // No node is likelier than the likeliest first one.
    if (node_limit(match, limits) <= best.score) return;
    improve_after(tree, places[static_cast<size_t>(match - 1)], limits, best);
  }
}

void SuffixSpeculator::improve(ContextSearch& search, ContinuationTree& tree,
                               std::span<const TokenId> context, const SuffixDraftLimits& limits,
                               SuffixDraft& best) {
  PlaceRange tried;
  int ends = 0;
  for (int match = search.find(context); match > 0 && ends < kMaxEnds; --match) {
    if (node_limit(match, limits) <= best.score) return;
    const PlaceRange range = search.range(match);
    if (range == tried) continue;
    tried = range;
    ++ends;
    improve_after(tree, tree.reset(range, match), limits, best);
  }
}

void SuffixSpeculator::draft(const SuffixTree& tree, SuffixPlace match, const SuffixDraftLimits& limits,
                             SuffixDraft& draft) {
  grow(tree, match, limits, draft);
}

template <typename Tree>
void SuffixSpeculator::improve_after(Tree& tree, SuffixPlace match, const SuffixDraftLimits& limits,
                                     SuffixDraft& best) {
  const SuffixPlace first = tree.likeliest_after(match);
  const double max = node_limit(match.depth, limits);
  if (!first || max * ratio(tree.count(first), tree.count(match)) <= best.score) return;
  grow(tree, match, limits, trial_);
  if (trial_.score > best.score) std::swap(trial_, best);
}

template <typename Tree>
void SuffixSpeculator::grow(Tree& tree, SuffixPlace match, const SuffixDraftLimits& limits,
                            SuffixDraft& draft) {
  draft.match = match.depth;
  draft.score = 0;
  draft.nodes.clear();
  heap_.clear();
  const int whole = tree.count(match);
  const int max = node_limit(match.depth, limits);
  int number = 0;
  SuffixPlace from = match;
  for (int size = 0; size < max; ++size) {
    const bool is_deep = from.depth - match.depth >= limits.max_draft_len;
    SuffixPlace place = is_deep ? SuffixPlace{} : tree.likeliest_after(from);
    for (int rank = 0; place && rank < (limits.is_tree ? max - size : 1); ++rank) {
      const double path_probability = ratio(tree.count(place), whole);
      if (path_probability < limits.min_path_probability) break;
      heap_.push_back(
          {place,
           number++,
           {tree.last_token(place), size - 1, ratio(tree.count(place), tree.count(from)), path_probability}});
      std::push_heap(heap_.begin(), heap_.end());
      place = tree.next_likeliest(place);
    }
    if (heap_.empty()) return;
    std::pop_heap(heap_.begin(), heap_.end());
    from = heap_.back().place;
    draft.nodes.push_back(heap_.back().node);
    draft.score += heap_.back().node.path_probability;
    heap_.pop_back();
  }
}

}  // namespace outrider
