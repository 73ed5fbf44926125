// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "outrider/result.h"
#include "outrider/token.h"
#include "tensor/buffer.h"

namespace outrider {

struct KvShape {
  int64_t layer_count = 0;
  int64_t kv_head_count = 0;
  int64_t head_dim = 0;
  int page_size = 16;      // entries per page, >= 1
  int64_t page_count = 0;  // pages in the pool
};

class KvCache;

// The cached entries of one sequence: a page table and the committed tokens. Movable handle; its pages go
// back when it is destroyed, and full pages of committed tokens stay findable for sequences with the same
// beginning.
class KvSequence {
 public:
  KvSequence() = default;
  ~KvSequence();
  KvSequence(KvSequence&& other) noexcept;
  KvSequence& operator=(KvSequence&& other) noexcept;

  int32_t length() const { return static_cast<int32_t>(tokens_.size()); }  // committed entries
  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const int32_t> pages() const {
    return pages_;
  }  // staged pages included while a transaction is open

 private:
  friend class KvCache;
  friend class KvTransaction;
  KvCache* cache_ = nullptr;
  std::vector<int32_t> pages_;
  std::vector<TokenId> tokens_;
  int staged_ = 0;  // entries staged by the open transaction
};

// Entries reserved for one forward pass: staged entry i of a sequence is its entry length() + i. Either a
// path of them is committed, or the destructor gives all of them back. One open transaction per sequence.
class KvTransaction {
 public:
  ~KvTransaction();
  KvTransaction(KvTransaction&& other) noexcept;
  KvTransaction& operator=(KvTransaction&& other) noexcept;

  int count() const { return count_; }
  // Row of the key and value arrays where staged entry i is written.
  int32_t slot(int i) const;

  // Keeps the staged entries `path` (ascending), moves them together behind the committed ones in every
  // layer, and frees the rest. tokens[i] is the token of path[i].
  void commit(std::span<const int> path, std::span<const TokenId> tokens);

 private:
  friend class KvCache;
  KvTransaction(KvSequence* sequence, int count) : sequence_(sequence), count_(count) {}
  KvSequence* sequence_ = nullptr;
  int count_ = 0;
};

// Paged keys and values of one model for all its sequences. Between steps: free + cached + in use ==
// page_count, and nothing is staged. Pages are shared copy-free between sequences with the same beginning;
// only full pages of committed entries are shared, and they are never written again.
class KvCache {
 public:
  explicit KvCache(const KvShape& shape);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  const KvShape& shape() const { return shape_; }

  // A sequence that already holds the longest run of full cached pages that begins `tokens`, but always less
  // than all of `tokens`, so that at least one token is left to compute.
  KvSequence open(std::span<const TokenId> tokens);

  // Error (kResource): not enough pages; nothing changes.
  Result<KvTransaction> stage(KvSequence& sequence, int count);

  // Forgets committed entries from `length` on. Shared pages are left alone: a partly kept shared page is
  // copied.
  void rewind(KvSequence& sequence, int32_t length);

  // [page_count * page_size, kv_head_count, head_dim]
  float* keys(int64_t layer);
  float* values(int64_t layer);

  // Pages that stage() could hand out now: free ones and those kept only for reuse.
  int64_t available_pages() const;
  // Pages that `count` more entries of this sequence would need.
  int64_t pages_needed(const KvSequence& sequence, int count) const;

  // Recounts everything; for tests and debug builds. Error: what does not add up.
  Status check_invariants() const;

 private:
  friend class KvSequence;
  friend class KvTransaction;
  struct Pool;
  KvShape shape_;
  Buffer storage_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace outrider
