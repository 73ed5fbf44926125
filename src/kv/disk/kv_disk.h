// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kv/disk/run_folder.h"
#include "kv/kv_cache.h"

namespace outrider {

// All of a shape that the bytes of its pages and states depend on: a part of every identity.
std::string describe(const KvShape& shape);

// Keeps the findable pages of a cache, and the states at their ends, in a folder, and brings them back into
// the cache of a later process. A page that comes back has the bits of a computed one: it is a
// copy, found by scope and tokens, of a cache with the same identity.
//
// Pages are saved by runs: parts of a text that begin at multiples of the run's length. A run is saved when
// it is complete, and the rest when there is time, or before it is overwritten. One thread uses it.
class KvDisk final : public PageWatcher {
 public:
  struct Options {
    std::filesystem::path folder;  // of all models
    int64_t max_bytes = 0;
    std::string identity;  // all that the bits depend on besides tokens; the cache's shape is added
    int64_t run_bytes = int64_t{4} << 20;  // of a run, roughly
    int64_t max_queued = int64_t{64} << 20;
  };
  // The cache must outlive it.
  KvDisk(KvCache* cache, const Options& options);
  // Saves what is left.
  ~KvDisk() override;
  KvDisk(const KvDisk&) = delete;
  KvDisk& operator=(const KvDisk&) = delete;

  // Copies a run for the thread that writes: one that is complete, or for `everything` any, and states; then
  // it waits for room. False: nothing is left to be saved.
  bool save(bool everything);
  // Waits until everything that was copied is written.
  void flush() { folder_.flush(); }

  // Brings back pages that begin the text of `sequence`, for about that long. True: more are left, and the
  // call is to be repeated. It holds the pages for the sequence until release(), or until it is called for
  // another one.
  bool restore(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope, double limit_ms);
  // Whether restore() would bring anything back.
  bool has_more(std::span<const TokenId> tokens, uint64_t scope) const;
  // Holds pages no longer. False: it held none.
  bool release();

  int64_t run_pages() const { return run_pages_; }
  // Runs that the folder has.
  int64_t size() const { return folder_.size(); }

  void published(int32_t page) override;
  void evicted(int32_t page) override;

 private:
  // The run that has a page, while the page belongs to that prefix.
  struct SavedPage {
    PrefixId prefix = kEmptyPrefix;
    RunId run;
  };
  // Pages of a run, which a thread loads.
  struct RunPages {
    RunId run;
    int64_t first = 0;           // page of the run
    std::vector<int32_t> pages;  // of the cache, reserved
  };
  struct LoadedPages {
    int64_t count = 0;             // of whole pages, up to the first one that is not
    std::vector<std::byte> bytes;  // [count, page_bytes_], where they are not in the cache yet
  };
  struct LoadingRun {
    RunId run;
    int64_t pages = 0;
    std::future<LoadedPages> loaded;
  };
  struct Restoring {
    uint64_t sequence = 0;
    std::vector<TokenId> tokens;
    KvSequence pages;
    RunIndex::Found found;
    int64_t next = 0;             // page that no thread loads yet
    std::deque<LoadingRun> runs;  // being loaded, in order
  };

  bool is_saved(int32_t page) const;
  bool ends_run(int32_t page) const;
  // The pages of the text from the beginning of the run up to `page`; empty: some are not known any more.
  std::vector<int32_t> run_up_to(int32_t page) const;
  // The run before the one of these pages, if there is one. False: there is none on disk.
  bool find_before(std::span<const int32_t> pages, RunId& before) const;
  // Copies the first run of the page's text that is not on disk. True: that was the page's own.
  bool save_run(int32_t page);
  void write_pages(std::span<const int32_t> pages, const RunId& before);
  void save_state(int32_t page);
  void collect();
  RunIndex::Found find(std::span<const TokenId> tokens, uint64_t scope) const;
  void begin(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope);
  void load_next();
  bool waits_until(double time_ms);
  void take_run();
  LoadedPages load(const RunPages& run);
  LoadedPages load_pages(const RunFile& file, const RunPages& run);
  void put(int32_t page, const std::byte* entries);
  int64_t restored_pages() const;
  bool adopt(const LoadingRun& run, const LoadedPages& loaded);
  void restore_state();

  KvCache& cache_;
  int64_t page_bytes_;
  int64_t run_pages_;
  RunFolder folder_;
  std::vector<SavedPage> saved_;        // by page
  std::vector<int32_t> complete_;       // pages that end runs, perhaps not yet saved
  std::vector<int32_t> rest_;           // last pages of runs, and pages with states, perhaps not yet saved
  bool is_dirty_ = false;               // pages were published since rest_ was collected
  std::vector<PrefixId> saved_states_;  // of checkpoints
  // Held while a thread puts a page: two that first write to a large page of memory would both clear it.
  std::mutex putting_;
  std::optional<Restoring> restoring_;
};

}  // namespace outrider
