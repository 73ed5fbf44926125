// SPDX-License-Identifier: Apache-2.0
#include "drafters/cached_growth.h"

#include <algorithm>
#include <numeric>

namespace outrider {

int CachedGrowth::max_staged(const SpeculativeOptions& options) {
  return kMaxUncached + 1 +
         make_tree_policy(options)->max_expanded(max_tree_nodes(options), options.max_draft_len);
}

int64_t CachedGrowth::max_rows(const SpeculativeOptions& options, const DrafterContext& context) {
  return std::max<int64_t>(context.prefill_chunk, int64_t{context.max_batch} * max_staged(options));
}

KvShape CachedGrowth::cache_shape(KvShape shape, int64_t max_length, const SpeculativeOptions& options,
                                  const DrafterContext& context) {
  shape.page_size = context.page_size;
  shape.type = context.kv_type;
  shape.states.sequence_count = context.max_batch;
  const int64_t entries = max_length + max_staged(options);
  shape.page_count = context.max_batch * ((entries + shape.page_size - 1) / shape.page_size + 1);
  return shape;
}

CachedGrowth::CachedGrowth(const SpeculativeOptions& options, const DrafterContext& context,
                           const KvShape& shape, const Vocabulary& vocabulary, Model& model)
    : cache_(shape, KvOptions(), model.make_storage(shape)),
      policy_(make_tree_policy(options)),
      growth_(growth_options(options, policy_.get())),
      max_nodes_(max_tree_nodes(options)),
      max_staged_(max_staged(options)),
      vocabulary_(vocabulary) {
  const auto batch = static_cast<size_t>(context.max_batch);
  batch_.reserve({.rows = max_rows(options, context),
                  .max_sequences = context.max_batch,
                  .max_entries = shape.page_count * shape.page_size / context.max_batch,
                  .page_size = shape.page_size,
                  .max_draft_len = max_staged_});
  for (size_t i = 0; i < batch; ++i) {
    growing_.push_back(std::make_unique<Growing>());
    growing_.back()->entries.reserve(static_cast<size_t>(max_staged_));
  }
  active_.reserve(batch);
  rows_.reserve(batch);
}

void CachedGrowth::start(const Vocabulary& vocabulary) {
  start();
  vocabulary_ = vocabulary;
}

void CachedGrowth::reserve(DraftSequence& sequence, int64_t length) const {
  const auto staged = static_cast<size_t>(max_staged_);
  sequence.kv.reserve(length + max_staged_);
  sequence.history.reserve(static_cast<size_t>(length) + staged);
  sequence.tokens.reserve(staged);
  sequence.parents.reserve(staged);
}

bool CachedGrowth::add(const DraftRequest& request, TokenTree& tree, DraftSequence& sequence,
                       std::span<const TokenId> uncached) {
  const int expanded = policy_->max_expanded(std::min(request.max_nodes, max_nodes_), request.max_draft_len);
  auto staged = cache_.stage(sequence.kv, static_cast<int>(uncached.size()) + expanded);
  if (!staged.ok()) return false;
  sequence.staged = std::move(*staged);
  sequence.tokens.assign(uncached.begin(), uncached.end());
  sequence.parents.resize(uncached.size());
  std::iota(sequence.parents.begin(), sequence.parents.end(), -1);
  sequence.computed = 0;
  if (active_.size() == growing_.size()) growing_.push_back(std::make_unique<Growing>());
  Growing& growing = *growing_[active_.size()];
  growing.sequence = &sequence;
  growing.entries.assign(1, static_cast<int>(uncached.size()) - 1);
  growing.growth.start(growth_, request, tree, sequence.history.sync(request));
  if (growing.growth.frontier().empty()) return false;
  active_.push_back(&growing);
  return true;
}

void CachedGrowth::append_frontiers() {
  batch_.clear();
  rows_.clear();
  for (Growing* growing : active_) rows_.push_back(append_frontier(*growing));
}

// The number that the next pass expands in all sequences.
double CachedGrowth::expanded_nodes() const {
  size_t nodes = 0;
  for (const Growing* growing : active_) nodes += growing->growth.frontier().size();
  return static_cast<double>(nodes);
}

// The nodes of the frontier; for the root, all tokens that are not yet cached.
CachedGrowth::Rows CachedGrowth::append_frontier(Growing& growing) {
  DraftSequence& sequence = *growing.sequence;
  const TokenTree& tree = growing.growth.tree();
  const bool is_root = tree.drafted() == 0;
  if (is_root && vocabulary_.mask)
    return {.sequence = &sequence, .first = 0, .logits_index = append_masks(growing)};
  const int first = is_root ? 0 : static_cast<int>(sequence.tokens.size());
  growing.entries.resize(static_cast<size_t>(tree.size()), -1);
  for (const int node : growing.growth.frontier()) {
    if (is_root) break;
    growing.entries[static_cast<size_t>(node)] = static_cast<int>(sequence.tokens.size());
    const TokenId token = tree.token(node);
    sequence.tokens.push_back(vocabulary_.own_ids.empty() ? token
                                                          : vocabulary_.own_ids[static_cast<size_t>(token)]);
    sequence.parents.push_back(growing.entries[static_cast<size_t>(tree.parent(node))]);
  }
  const int index =
      append_tree(batch_, sequence.kv, *sequence.staged, {sequence.tokens, sequence.parents, first},
                  is_root ? LogitsWanted::kLast : LogitsWanted::kAll);
  return {.sequence = &sequence, .first = first, .logits_index = index};
}

// The uncached tokens and a mask for every level but the first. Returns the index of the root's logits.
int CachedGrowth::append_masks(Growing& growing) {
  DraftSequence& sequence = *growing.sequence;
  const DraftRequest& request = growing.growth.request();
  const auto root = static_cast<int>(sequence.tokens.size()) - 1;
  const auto levels = static_cast<size_t>(std::min({request.max_draft_len, request.max_nodes, max_nodes_}));
  sequence.tokens.resize(sequence.tokens.size() + levels - 1, *vocabulary_.mask);
  return append_chain(batch_, sequence.kv, *sequence.staged, sequence.tokens, root);
}

void CachedGrowth::expand_all_levels(std::span<const float> logits) {
  const size_t width = logits.size() / batch_.logits_rows.size();
  for (size_t i = 0; i < active_.size(); ++i) {
    Growing& growing = *active_[i];
    growing.sequence->computed = growing.sequence->parents.size();  // masks are no text
    auto row = static_cast<size_t>(rows_[i].logits_index);
    for (; !growing.growth.frontier().empty(); ++row)
      growing.growth.expand(
          [&](size_t) { return logits.subspan(row * width, static_cast<size_t>(vocabulary_.size)); });
  }
  active_.clear();
}

void CachedGrowth::expand(std::span<const float> logits) {
  if (vocabulary_.mask) return expand_all_levels(logits);
  const size_t width = logits.size() / batch_.logits_rows.size();
  for (size_t i = 0; i < active_.size(); ++i) {
    const auto index = static_cast<size_t>(rows_[i].logits_index);
    rows_[i].sequence->computed = rows_[i].sequence->tokens.size();
    active_[i]->growth.expand([&](size_t node) {
      return logits.subspan((index + node) * width, static_cast<size_t>(vocabulary_.size));
    });
  }
  std::erase_if(active_, [](Growing* growing) { return growing->growth.frontier().empty(); });
}

}  // namespace outrider
