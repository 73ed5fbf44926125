// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "drafters/learned/feature_store.h"
#include "kv/kv_cache.h"
#include "models/forward_batch.h"

namespace outrider {

// Caches committed tokens with entries that depend only on the token and its features, so that tokens of
// several sequences are computed together. An Owner has its entries in `kv`, and in `waiting` the features
// that they are made of, if any.
template <typename Owner>
class ContextPass {
 public:
  // Tokens first, first + 1, ... of the owner's sequence; consecutive rows of the batch.
  struct Piece {
    Owner* owner = nullptr;
    int first = 0;
    std::span<const TokenId> tokens;
    KvTransaction transaction;
  };

  // max: rows computed at a time
  explicit ContextPass(int64_t max) : max_(static_cast<size_t>(max)) {}

  // Adds the tokens that come after the tokens in owner.kv. When the batch is full, compute(batch, pieces) is
  // called to cache what has been added. False: there are no pages.
  template <typename Compute>
  bool add(KvCache& cache, Owner& owner, std::span<const TokenId> tokens, Compute&& compute) {
    while (!tokens.empty()) {
      const auto chunk = tokens.first(std::min(tokens.size(), max_ - static_cast<size_t>(batch_.rows())));
      auto transaction = cache.stage(owner.kv, static_cast<int>(chunk.size()));
      if (!transaction.ok()) return false;
      append_chain(batch_, owner.kv, *transaction, chunk, LogitsWanted::kNone);
      pieces_.push_back({.owner = &owner,
                         .first = owner.kv.length(),
                         .tokens = chunk,
                         .transaction = std::move(transaction).value()});
      tokens = tokens.subspan(chunk.size());
      if (static_cast<size_t>(batch_.rows()) == max_) run(compute);
    }
    return true;
  }

  // Adds the tokens with features that wait, but for the last `left` ones; finish() with their store must
  // follow.
  template <typename Compute>
  void add_waiting(KvCache& cache, Owner& owner, Compute&& compute, int left = 0) {
    FeatureStore::Waiting& waiting = owner.waiting;
    const int length = owner.kv.length(), count = waiting.end() - left - length;
    if (!waiting.is_complete || count <= 0) return;
    owners_.push_back(&owner);
    const auto uncached = waiting.rows.tokens().subspan(static_cast<size_t>(length - waiting.first),
                                                        static_cast<size_t>(count));
    waiting.is_complete = add(cache, owner, uncached, compute);
  }

  // Caches all that has been added.
  template <typename Compute>
  void finish(Compute&& compute) {
    if (!pieces_.empty()) run(compute);
  }
  // Its features wait no more in the store.
  template <typename Compute>
  void finish(FeatureStore& store, Compute&& compute) {
    finish(compute);
    for (Owner* owner : owners_) store.drop(owner->waiting, owner->kv.length());
    owners_.clear();
  }

 private:
  template <typename Compute>
  void run(Compute&& compute) {
    compute(std::as_const(batch_), std::span<const Piece>(pieces_));
    for (Piece& piece : pieces_) {
      path_.resize(piece.tokens.size());
      std::iota(path_.begin(), path_.end(), 0);
      piece.transaction.commit(path_, piece.tokens);
    }
    pieces_.clear();
    batch_.clear();
  }

  size_t max_;  // rows
  ForwardBatch batch_;
  std::vector<Piece> pieces_;
  std::vector<Owner*> owners_;  // of waiting features that have been added
  std::vector<int> path_;
};

}  // namespace outrider
