// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kv/kv_storage.h"
#include "kv/page_pool.h"
#include "kv/prefix_cache.h"
#include "kv/state_checkpoints.h"
#include "kv/state_store.h"
#include "outrider/result.h"
#include "outrider/token.h"

namespace outrider {

struct KvOptions {
  int hash_bits = 64;  // width of the hashes of the prefix search; tests use narrow ones
  // Whether entries without an owner are overwritten with NaN (in Q8_0 the scales), so that tests notice
  // their use.
#ifdef NDEBUG
  bool poison = false;
#else
  bool poison = true;
#endif
};

class KvCache;

// An adapter by its number in the model (AdapterSet), and a factor of its updates.
struct ScaledAdapter {
  int32_t adapter = 0;
  float factor = 1;
  bool operator==(const ScaledAdapter&) const = default;
};

// Gets to know what becomes of a cache's findable pages (PrefixCache).
class PageWatcher {
 public:
  virtual ~PageWatcher() = default;
  virtual void published(int32_t page) = 0;
  // The page is about to be overwritten; it is still findable, and its entries are there.
  virtual void evicted(int32_t page) = 0;
};

// The cached entries of one sequence: a page table and the committed tokens. Movable handle; its pages go
// back when it is destroyed, and full pages of committed tokens stay findable for sequences with the same
// beginning. It is not moved or destroyed while a transaction is open, and does not outlive its cache.
class KvSequence {
 public:
  KvSequence() = default;
  ~KvSequence();
  KvSequence(KvSequence&& other) noexcept;
  KvSequence& operator=(KvSequence&& other) noexcept;

  int32_t length() const { return static_cast<int32_t>(tokens_.size()); }  // committed entries
  std::span<const TokenId> tokens() const { return tokens_; }
  // The adapters that its entries are computed with; sequences with other adapters must have another scope.
  std::span<const ScaledAdapter> adapters() const { return adapters_; }
  void set_adapters(std::span<const ScaledAdapter> adapters) {
    adapters_.assign(adapters.begin(), adapters.end());
  }
  // Makes room for that many entries: staging and committing them does not allocate. Precondition: open.
  void reserve(int64_t entries);
  // Staged pages are included while a transaction is open. Pages before the window are kNoPage.
  static constexpr int32_t kNoPage = -1;
  std::span<const int32_t> pages() const { return pages_; }
  // Its state in KvCache::states(), and how many of its last committed entries have an update there, in their
  // order from 0 on; staged entries follow. Without layers that have states it is kNoState.
  static constexpr int32_t kNoState = -1;
  int32_t state() const { return state_; }
  int32_t kept_updates() const { return kept_updates_; }
  // The number of first entries that other sequences have computed as well, but that no checkpoint of the
  // state holds; 0: none. A pass that ends there makes one.
  int32_t branch() const { return branch_; }
  // The number of entries at the last checkpoint that it made or began with.
  int32_t checkpointed() const { return checkpointed_; }

 private:
  friend class KvCache;
  friend class KvTransaction;
  KvCache* cache_ = nullptr;
  std::vector<int32_t> pages_;
  size_t first_page_ = 0;  // number of pages given back because no later row sees them
  std::vector<TokenId> tokens_;
  std::vector<PrefixId> prefixes_;  // one per full page of committed tokens: the prefix that it ends
  uint64_t scope_ = 0;
  std::vector<ScaledAdapter> adapters_;
  int staged_ = 0;        // entries staged by the open transaction
  int64_t reserved_ = 0;  // last pages, without entries yet (KvCache::reserve_pages)
  int32_t state_ = kNoState;
  int32_t kept_updates_ = 0;
  int32_t branch_ = 0;
  int32_t checkpointed_ = 0;
  bool had_chain_ = false;  // the last pass computed a part of a prompt
  // The checkpoints that it made last: at the end of a part of its prompt, and of the text after that.
  PrefixId prompt_checkpoint_ = kEmptyPrefix, text_checkpoint_ = kEmptyPrefix;
};

// Entries reserved for one forward pass: staged entry i of a sequence is its entry length() + i. Either a
// path of them is committed, or the destructor gives all of them back. One open transaction per sequence.
// Where layers have states, a pass over a chain (append_chain) applies all of its entries but the last at
// once; a sequence that does not commit these loses all entries.
class KvTransaction {
 public:
  ~KvTransaction();
  KvTransaction(KvTransaction&& other) noexcept;
  KvTransaction& operator=(KvTransaction&& other) noexcept;

  int count() const { return count_; }
  // Reserves more entries after the staged ones, `count` in all. Error (kResource): not enough pages;
  // nothing changes.
  Status extend(int count);
  // Row of the key and value arrays where staged entry i is written.
  int32_t slot(int i) const;
  // Writes staged entry `from` over staged entry `to`, in every layer.
  void copy(int from, int to);

  // Keeps the staged entries `path` (ascending), moves them together right after the committed ones in every
  // layer, and frees the rest. tokens[i] is the token of path[i].
  void commit(std::span<const int> path, std::span<const TokenId> tokens);

 private:
  friend class KvCache;
  KvTransaction(KvSequence* sequence, int count) : sequence_(sequence), count_(count) {}
  KvSequence* sequence_ = nullptr;
  int count_ = 0;
};

// Paged keys and values of one model for all its sequences. Between steps: free + cached + in use ==
// page_count, and nothing is staged. Not thread-safe. Pages are shared copy-free between sequences with the
// same beginning; only full pages of committed entries are shared, and they are never written again. Two
// sequences that computed the same page end up with one. Where KvShape::window is set, a sequence gives back
// the pages that no later row sees; they stay findable as pages of finished sequences do.
//
// Where layers have states, a cached page helps only if a checkpoint has the state at its end. A sequence
// makes one at the end of its last full page, after a pass over a tree and after a pass over a chain that
// ends there. It keeps the last of each kind: an earlier one gives its place to it, unless another text has
// gone on from there. Checkpoints hold what a pass would compute again, bit for bit.
class KvCache {
 public:
  // With entries in this machine's memory. Throws std::bad_alloc when they do not fit.
  explicit KvCache(const KvShape& shape, const KvOptions& options = {});
  // `storage` has the slots of that shape.
  KvCache(const KvShape& shape, const KvOptions& options, std::unique_ptr<KvStorage> storage);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  const KvShape& shape() const { return shape_; }
  int64_t pages_for(int64_t entries) const { return (entries + shape_.page_size - 1) / shape_.page_size; }

  // A sequence that already holds the longest run of full cached pages that begins `tokens`, but always less
  // than all of `tokens`, so that at least one token is left to compute. Where layers have states, the run
  // ends with a checkpoint. Pages are shared within a scope only.
  KvSequence open(std::span<const TokenId> tokens, uint64_t scope = 0);
  // Gives an open sequence another text, with what open() would find of it. It does not allocate where there
  // is room for that (KvSequence::reserve). Precondition: no layer has states.
  void reopen(KvSequence& sequence, std::span<const TokenId> tokens, uint64_t scope = 0);

  // A sequence of all full cached pages that begin `tokens`, without a state: it only holds the pages, and
  // adopt() makes it longer.
  KvSequence open_pages(std::span<const TokenId> tokens, uint64_t scope);
  // Gives a sequence of open_pages() up to `count` pages whose entries come from elsewhere: KvStorage::load()
  // may write them until adopt() takes them. Returns the pages, fewer where fewer are available.
  std::vector<int32_t> reserve_pages(KvSequence& sequence, int64_t count);
  // Makes the first page of reserve_pages() that is left findable. Returns the page.
  int32_t adopt(KvSequence& sequence, std::span<const TokenId> tokens);
  // Makes the cached pages that begin `tokens` no longer findable, but for those that sequences use.
  void forget(std::span<const TokenId> tokens, uint64_t scope);
  // The pages that begin `tokens`, and how many of them open() can go on from.
  struct Hits {
    int32_t found = 0;
    int32_t usable = 0;
  };
  Hits count_hits(std::span<const TokenId> tokens, uint64_t scope) const;

  // The entries that open() would find, and the number of their pages that no sequence uses.
  struct Cached {
    int64_t length = 0;
    int64_t idle_pages = 0;
  };
  Cached find(std::span<const TokenId> tokens, uint64_t scope) const;

  // Reserves count >= 1 entries. Error (kResource): not enough pages; nothing changes.
  Result<KvTransaction> stage(KvSequence& sequence, int count);

  // Forgets committed entries from `length` on. A state that holds later entries goes back to the last
  // checkpoint before them, and so does the sequence. All entries are forgotten where there is none, or where
  // a row after `length` would see pages that were given back. Shared pages stay as they are: the next
  // stage() copies one that is kept in part.
  void rewind(KvSequence& sequence, int32_t length);

  // The entries and states of HostPages. Precondition: they lie there.
  std::byte* keys(int64_t layer) { return host_pages().keys(layer); }
  std::byte* values(int64_t layer) { return host_pages().values(layer); }
  HostStates& host_states() { return host_pages().states(); }
  // Where entries and states lie, for the operations of a LayerBackend.
  KvStorage& storage() { return *storage_; }
  const KvStorage& storage() const { return *storage_; }

  // The findable pages, and who is told about them; nullptr: nobody.
  const PrefixCache& prefixes() const { return prefixes_; }
  void set_watcher(PageWatcher* watcher) { watcher_ = watcher; }
  StateCheckpoints& checkpoints() { return checkpoints_; }

  // Tells what the states hold.
  StateStore& states() { return states_; }
  const StateStore& states() const { return states_; }

  // Appends every later move to `moves`, so that caches of other ranks can repeat it; nullptr: to none.
  void record_moves(std::vector<KvMove>* moves) { moves_ = moves; }
  // Repeats a move of another rank's cache.
  void repeat(const KvMove& move) { move_rows(move); }

  // Pages that stage() could hand out now: free pages and pages kept only for reuse.
  int64_t available_pages() const;
  // The pages among them that are kept for reuse.
  int64_t cached_pages() const { return pool_.kept_count(); }
  // Pages that `count` more entries of this sequence would need, a copy of a shared page included.
  int64_t pages_needed(const KvSequence& sequence, int count) const;

  // Recounts all pages and entries; for tests and debug builds. Error: names the counts that differ.
  Status check_invariants() const;

 private:
  friend class KvSequence;
  friend class KvTransaction;

  template <typename Take>
  void for_each_hit(std::span<const TokenId> tokens, uint64_t scope, Take&& take) const;
  bool has_states() const { return shape_.states.layer_count > 0; }
  // Gives an empty sequence the entries of the cached pages that begin `tokens`.
  Hits share_prefix(KvSequence& sequence, std::span<const TokenId> tokens, uint64_t scope);
  void share_pages(KvSequence& sequence, std::span<const TokenId> tokens, int32_t count);
  int64_t slot_count() const { return shape_.page_count * shape_.page_size; }
  int64_t slot_of(const KvSequence& sequence, int64_t entry) const;
  Status check_available(int64_t needed) const;
  // Pages for so many staged entries. Precondition: they are available.
  void take_pages(KvSequence& sequence, int count);
  // Whether the page of the sequence's next entry also holds findable entries or entries of other sequences.
  bool writes_into_published_page(const KvSequence& sequence) const;

  int32_t take_page();
  void release_page(int32_t page);
  void release_pages(KvSequence& sequence, size_t keep);
  // The first page with an entry that a row at position `length` or later sees.
  size_t first_seen_page(int64_t length) const;
  void release_unseen_pages(KvSequence& sequence);
  void own_last_page(KvSequence& sequence);
  void move_rows(const KvMove& move);
  void publish_full_pages(KvSequence& sequence);
  void finish(KvSequence& sequence);
  // The updates of the committed `path` are the new kept updates.
  void commit_updates(KvSequence& sequence, std::span<const int> path);
  void keep_checkpoint(KvSequence& sequence);
  // Gives the sequence the state at the end of its first `pages` pages.
  void restore_checkpoint(KvSequence& sequence, size_t pages);
  // The entries up to the last checkpoint among the first `length` of a sequence; 0: there is none.
  int32_t checkpoint_before(const KvSequence& sequence, int32_t length) const;
  void forget_all(KvSequence& sequence);
  void close(KvSequence& sequence);
  void poison_page(int32_t page);
  HostPages& host_pages();
  Status check_sequence(const KvSequence& sequence) const;

  KvShape shape_;
  KvOptions options_;
  PagePool pool_;
  PrefixCache prefixes_;
  std::unique_ptr<KvStorage> storage_;
  HostPages* host_pages_;  // storage_, or null: the entries lie elsewhere
  StateStore states_;
  StateCheckpoints checkpoints_;
  std::vector<const KvSequence*> sequences_;  // all that are open
  std::vector<KvMove>* moves_ = nullptr;
  PageWatcher* watcher_ = nullptr;
};

}  // namespace outrider
