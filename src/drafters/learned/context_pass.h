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
  static constexpr int kMax = 16;  // tokens that may wait for the next draft

  std::vector<float> values;  // [tokens, size]
  int first = 0;              // token that they begin with
  int end = 0;                // one past the last token
  bool is_complete = true;    // no token is missing between the cached ones and `end`

  // Appends the features of tokens from `end` on.
  void take(const CommittedFeatures& committed) {
    is_complete &= committed.first <= end;
    for (size_t i = 0; is_complete && i < committed.rows.size(); ++i) {
      if (committed.first + static_cast<int>(i) < end) continue;
      const std::span<const float> features = committed.at(i);
      values.insert(values.end(), features.begin(), features.end());
      ++end;
    }
  }
  // Features of `count` tokens from `token` on.
  std::span<const float> of(int token, int64_t count) const {
    const auto size = static_cast<int64_t>(values.size()) / (end - first);
    return std::span(values).subspan(static_cast<size_t>((token - first) * size),
                                     static_cast<size_t>(count * size));
  }
  int count() const { return end - first; }
  // Drops all features; the next ones are those of token `next`.
  void clear(int next) {
    values.clear();
    first = end = next;
  }
};

// Caches committed tokens whose entries depend on the token and its features alone, so that tokens of several
// sequences are computed together. An Owner has its entries in `kv`, and in `waiting` the features that they
// are made of, if any.
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

  // Adds the tokens that come after those in owner.kv. compute(batch, pieces) is called to cache what has
  // been added whenever the batch is full. False: there are no pages.
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

  // Adds those of the sequence's tokens, which are `tokens`, whose features wait.
  template <typename Compute>
  void add_waiting(KvCache& cache, Owner& owner, std::span<const TokenId> tokens, Compute&& compute) {
    WaitingFeatures& waiting = owner.waiting;
    const auto length = static_cast<size_t>(owner.kv.length());
    if (!waiting.is_complete || std::cmp_less_equal(waiting.end, length)) return;
    owners_.push_back(&owner);
    const auto known = tokens.first(static_cast<size_t>(waiting.end));
    waiting.is_complete = add(cache, owner, known.subspan(length), compute);
  }

  // Keeps the features of committed tokens with their owners, `sequences` by id, and caches what waits of a
  // sequence where it becomes too much.
  template <typename Sequences, typename Compute>
  void absorb(KvCache& cache, Sequences& sequences, std::span<const CommittedFeatures> committed,
              Compute&& compute) {
    for (const CommittedFeatures& features : committed) {
      const auto found = sequences.find(features.sequence);
      if (found == sequences.end()) continue;
      WaitingFeatures& waiting = found->second.waiting;
      waiting.take(features);
      if (waiting.count() > WaitingFeatures::kMax)
        add_waiting(cache, found->second, features.tokens, compute);
    }
    finish(compute);
  }

  // Caches all that has been added; its features wait no more.
  template <typename Compute>
  void finish(Compute&& compute) {
    if (!pieces_.empty()) run(compute);
    for (Owner* owner : owners_) owner->waiting.clear(owner->kv.length());
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
  std::vector<Owner*> owners_;  // whose features are being cached
  std::vector<int> path_;
};

}  // namespace outrider
