// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "drafters/draft_state.h"
#include "drafters/drafter_context.h"
#include "kv/kv_cache.h"
#include "models/forward_batch.h"
#include "speculation/tree/tree_growth.h"
#include "speculation/tree/tree_policy.h"

namespace outrider {

// State of one sequence in a drafter that has its own cache.
struct DraftSequence {
  KvSequence kv;
  RequestHistory history;
  // Entries of the last draft: first the tokens that were not yet cached, the root last, then the nodes that
  // were expanded. The drafter decides which of them it commits.
  std::optional<KvTransaction> staged;
  std::vector<TokenId> tokens;  // by entry
  std::vector<int> parents;     // by entry, -1: continues what is committed
  size_t computed = 0;          // entries with keys and values
};

// Grows the trees of several sequences over a drafter's own cache, one pass per level for all together.
class CachedGrowth {
 public:
  // A tree's first pass computes at most so many tokens besides the root; a drafter computes more beforehand.
  static constexpr int kMaxUncached = 15;

  // Entries that one draft may stage: what its first pass computes, and the nodes it expands.
  static int max_staged(const SpeculativeOptions& options);
  // Rows of the largest pass, prompt chunks included.
  static int64_t max_rows(const SpeculativeOptions& options, const DrafterContext& context);
  // With pages for all sequences, of at most max_length tokens each.
  static KvShape cache_shape(KvShape shape, int64_t max_length, const SpeculativeOptions& options,
                             const DrafterContext& context);

  struct Vocabulary {
    int64_t size = 0;                       // ids that may be drafted, the first of each row of logits
    std::span<const TokenId> own_ids = {};  // the drafter's, by the target's id; empty: they are the same
    // The token that stands at places to be drafted, for a drafter that predicts all levels of a tree in one
    // pass: a level has one distribution whatever the path. Such entries are never committed.
    std::optional<TokenId> mask = {};
  };
  // `model` computes the drafts, or lends its backend to a head that does.
  CachedGrowth(const SpeculativeOptions& options, const DrafterContext& context, const KvShape& shape,
               const Vocabulary& vocabulary, Model& model);

  KvCache& cache() { return cache_; }
  const KvCache& cache() const { return cache_; }
  // Scratch between drafts.
  ForwardBatch& batch() { return batch_; }
  // Makes room for a sequence of that length and its drafts.
  void reserve(DraftSequence& sequence, int64_t length) const;

  void start() { active_.clear(); }
  // As above; from now on trees are of this vocabulary; its ids must outlive them.
  void start(const Vocabulary& vocabulary);
  // Adds a sequence to this draft, with its tokens that have no entries yet, the root last. False: there are
  // no pages, or nothing is to be drafted.
  bool add(const DraftRequest& request, TokenTree& tree, DraftSequence& sequence,
           std::span<const TokenId> uncached);

  // Rows of one sequence in a pass: its staged entries from `first` on. Logits are wanted of the root in the
  // first pass and of the masks after it, of all in later ones; they begin at row `logits_index`.
  struct Rows {
    DraftSequence* sequence = nullptr;
    int first = 0;
    int logits_index = 0;
  };

  // forward(batch, rows): the logits [batch.logits_rows, any width >= vocab] of a pass; `rows` by sequence.
  template <typename Forward>
  void grow(Forward&& forward) {
    // The first pass also computes uncached tokens, and finds the target's weights in the processor's caches.
    // Its time is an upper bound on another level's, so that it may only lower the estimate.
    bool is_first_pass = true;
    while (!active_.empty()) {
      append_frontiers();
      const double start = now_ms();
      const auto growing = static_cast<double>(active_.size());
      const double nodes = expanded_nodes() / growing;
      expand(forward(std::as_const(batch_), std::span<const Rows>(rows_)));
      if (vocabulary_.mask) return;  // further levels cost nothing
      const double each = (now_ms() - start) / growing;
      if (!std::exchange(is_first_pass, false) || each < growth_.level_time.ms_of(nodes))
        growth_.level_time.learn(nodes, each);
    }
  }

 private:
  // A sequence while its tree grows.
  struct Growing {
    TreeGrowth growth;
    DraftSequence* sequence = nullptr;
    std::vector<int> entries;  // by node: its entry, -1: not computed
  };

  void append_frontiers();
  double expanded_nodes() const;
  Rows append_frontier(Growing& growing);
  int append_masks(Growing& growing);
  void expand(std::span<const float> logits);
  void expand_all_levels(std::span<const float> logits);

  KvCache cache_;
  std::unique_ptr<TreePolicy> policy_;
  GrowthOptions growth_;
  int max_nodes_;   // of one tree
  int max_staged_;  // of one draft
  Vocabulary vocabulary_;
  ForwardBatch batch_;
  std::vector<std::unique_ptr<Growing>> growing_;  // one per request, and spare ones
  std::vector<Growing*> active_;                   // sequences that still grow
  std::vector<Rows> rows_;                         // of active_
};

}  // namespace outrider
