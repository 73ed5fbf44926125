// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "kv/kv_cache.h"
#include "models/forward_batch.h"
#include "outrider/drafter.h"

namespace outrider {

// Features of a sequence's last tokens, until they are needed.
struct WaitingFeatures {
  std::vector<float> values;  // [tokens, size]
  int first = 0;              // token that they begin with
  int end = 0;                // behind the last one
  bool is_complete = true;    // none is missing between what is cached and `end`

  // Takes those that follow on what is there.
  void take(const CommittedFeatures& committed) {
    is_complete &= committed.first <= end;
    for (size_t i = 0; is_complete && i < committed.rows.size(); ++i) {
      if (committed.first + static_cast<int>(i) < end) continue;
      const std::span<const float> features = committed.at(i);
      values.insert(values.end(), features.begin(), features.end());
      ++end;
    }
  }
  // They begin again with token `next`, which is not yet there.
  void clear(int next) {
    values.clear();
    first = end = next;
  }
};

// Caches committed tokens whose entries depend on the token and its features alone, so that those of several
// sequences are computed together, `most` at a time.
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

  explicit ContextPass(int64_t most) : most_(static_cast<size_t>(most)) {}

  // The tokens that follow on owner.kv. compute(batch, pieces) caches what has been added, whenever that is
  // enough. False: there are no pages.
  template <typename Compute>
  bool add(KvCache& cache, Owner& owner, std::span<const TokenId> tokens, Compute&& compute) {
    while (!tokens.empty()) {
      const auto chunk = tokens.first(std::min(tokens.size(), most_ - static_cast<size_t>(batch_.rows())));
      auto transaction = cache.stage(owner.kv, static_cast<int>(chunk.size()));
      if (!transaction.ok()) return false;
      append_chain(batch_, owner.kv, *transaction, chunk, LogitsWanted::kNone);
      pieces_.push_back({.owner = &owner,
                         .first = owner.kv.length(),
                         .tokens = chunk,
                         .transaction = std::move(transaction).value()});
      tokens = tokens.subspan(chunk.size());
      if (static_cast<size_t>(batch_.rows()) == most_) finish(compute);
    }
    return true;
  }

  template <typename Compute>
  void finish(Compute&& compute) {
    if (pieces_.empty()) return;
    compute(std::as_const(batch_), std::span<const Piece>(pieces_));
    for (Piece& piece : pieces_) {
      path_.resize(piece.tokens.size());
      std::iota(path_.begin(), path_.end(), 0);
      piece.transaction.commit(path_, piece.tokens);
    }
    pieces_.clear();
    batch_.clear();
  }

 private:
  size_t most_;  // rows
  ForwardBatch batch_;
  std::vector<Piece> pieces_;
  std::vector<int> path_;
};

}  // namespace outrider
