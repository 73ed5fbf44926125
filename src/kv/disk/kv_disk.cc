// SPDX-License-Identifier: Apache-2.0
#include "kv/disk/kv_disk.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "kv/disk/state_bytes.h"

namespace outrider {
namespace {

constexpr int64_t kMostPages = 256;  // of a run
constexpr int64_t kReadAhead = 8;    // runs

int64_t pages_of_run(const KvShape& shape, int64_t run_bytes) {
  return std::clamp<int64_t>(run_bytes / std::max<int64_t>(shape.page_bytes(), 1), 1, kMostPages);
}

}  // namespace

std::string describe(const KvShape& shape) {
  std::string text =
      "pages of " + std::to_string(shape.page_size) + " " + std::string(dtype_name(shape.type)) +
      (shape.values_are_keys ? " keys" : " keys and values") + ", window " + std::to_string(shape.window) +
      ", states " + std::to_string(shape.states.layer_count) + " " + std::to_string(shape.states.size) + " " +
      std::to_string(shape.states.update_size) + ", heads";
  for (int64_t layer = 0; layer < shape.layer_count; ++layer) {
    const KvHeads heads = shape.heads(layer);
    text += " " + std::to_string(heads.count) + "x" + std::to_string(heads.dim);
  }
  return text + "\n";
}

KvDisk::KvDisk(KvCache* cache, const Options& options)
    : cache_(*cache),
      page_bytes_(cache->shape().page_bytes()),
      run_pages_(pages_of_run(cache->shape(), options.run_bytes)),
      folder_({.folder = options.folder,
               .max_bytes = options.max_bytes,
               .identity = options.identity + describe(cache->shape()),
               .full_length = run_pages_ * cache->shape().page_size,
               .page_size = cache->shape().page_size,
               .max_queued = options.max_queued}),
      saved_(static_cast<size_t>(cache->shape().page_count)) {
  complete_.reserve(saved_.size());
  cache_.set_watcher(this);
}

KvDisk::~KvDisk() {
  release();
  is_dirty_ = true;  // states may have come since the last page
  try {
    while (save(/*everything=*/true)) {
    }
  } catch (const std::bad_alloc&) {
    log_warning("out of memory; the rest of the prompt cache is not written");
  }
  cache_.set_watcher(nullptr);
}

// In the middle of a step: it does not allocate.
void KvDisk::published(int32_t page) {
  is_dirty_ = true;
  if (ends_run(page) && complete_.size() < complete_.capacity()) complete_.push_back(page);
}

// Where the thread is busy the page is lost, as without a folder.
void KvDisk::evicted(int32_t page) {
  if (!folder_.has_room()) return;
  while (!is_saved(page) && !save_run(page) && folder_.has_room()) {
  }
  save_state(page);
}

bool KvDisk::is_saved(int32_t page) const {
  return saved_[static_cast<size_t>(page)].prefix == cache_.prefixes().prefix(page);
}

bool KvDisk::ends_run(int32_t page) const {
  const int64_t index = cache_.prefixes().index(page);
  return index >= 0 && (index + 1) % run_pages_ == 0;
}

std::vector<int32_t> KvDisk::run_up_to(int32_t page) const {
  const PrefixCache& prefixes = cache_.prefixes();
  if (prefixes.index(page) < 0) return {};
  std::vector<int32_t> pages(static_cast<size_t>(prefixes.index(page) % run_pages_) + 1);
  for (size_t i = pages.size(); i-- > 0; page = prefixes.page_before(page)) {
    if (page < 0) return {};
    pages[i] = page;
  }
  return pages;
}

bool KvDisk::find_before(std::span<const int32_t> pages, RunId& before) const {
  const PrefixCache& prefixes = cache_.prefixes();
  before = kNoRun;
  if (prefixes.index(pages.front()) == 0) return true;
  const int32_t page = prefixes.page_before(pages.front());
  if (page < 0 || !is_saved(page)) return false;
  before = saved_[static_cast<size_t>(page)].run;
  return folder_.length(before) == run_pages_ * cache_.shape().page_size;
}

bool KvDisk::save_run(int32_t page) {
  for (int32_t last = page;;) {
    const std::vector<int32_t> pages = run_up_to(last);
    if (pages.empty()) return true;  // it cannot be saved
    RunId before;
    if (find_before(pages, before)) {
      write_pages(pages, before);
      return last == page;
    }
    last = cache_.prefixes().page_before(pages.front());
    if (last < 0) return true;
  }
}

void KvDisk::write_pages(std::span<const int32_t> pages, const RunId& before) {
  const PrefixCache& prefixes = cache_.prefixes();
  const int64_t page_size = cache_.shape().page_size;
  PageRun run{.id = random_run_id(), .before = before, .scope = prefixes.scope(pages.front()), .tokens = {}};
  RunParts parts{.bytes = std::vector<std::byte>(pages.size() * static_cast<size_t>(page_bytes_)),
                 .part_bytes = page_bytes_};
  std::byte* to = parts.bytes.data();
  RunId replaced;
  for (const int32_t page : pages) {
    const std::span<const TokenId> tokens = prefixes.tokens(page);
    run.tokens.insert(run.tokens.end(), tokens.begin(), tokens.end());
    cache_.storage().save(page * page_size, page_size, to);
    to += page_bytes_;
    // A shorter run of the same pages has nothing that this one has not.
    SavedPage& saved = saved_[static_cast<size_t>(page)];
    if (is_saved(page) && folder_.length(saved.run) == std::ssize(run.tokens)) replaced = saved.run;
    saved = {prefixes.prefix(page), run.id};
  }
  folder_.write(std::move(run), std::move(parts), replaced);
}

void KvDisk::save_state(int32_t page) {
  StateCheckpoints& checkpoints = cache_.checkpoints();
  const PrefixId prefix = cache_.prefixes().prefix(page);
  if (std::ranges::find(saved_states_, prefix) != saved_states_.end() || !checkpoints.has(prefix)) return;
  const std::vector<int32_t> pages = run_up_to(page);
  RunId before;
  if (pages.empty() || !find_before(pages, before)) return;
  RunParts parts = parts_of(checkpoints.save(prefix));
  PageRun run{.id = random_run_id(),
              .before = before,
              .scope = cache_.prefixes().scope(page),
              .tokens = {},
              .is_state = true};
  for (const int32_t one : pages) {
    const std::span<const TokenId> tokens = cache_.prefixes().tokens(one);
    run.tokens.insert(run.tokens.end(), tokens.begin(), tokens.end());
  }
  saved_states_.push_back(prefix);
  folder_.write(std::move(run), std::move(parts));
}

// Finds what is not saved: pages that no page of their run follows, and pages with states.
void KvDisk::collect() {
  const PrefixCache& prefixes = cache_.prefixes();
  const auto count = static_cast<int32_t>(saved_.size());
  std::vector<bool> is_followed(saved_.size());
  for (int32_t page = 0; page < count; ++page) {
    const int32_t before = prefixes.holds(page) ? prefixes.page_before(page) : -1;
    if (before >= 0 && !ends_run(before)) is_followed[static_cast<size_t>(before)] = true;
  }
  std::vector<PrefixId> states = cache_.checkpoints().prefixes();
  std::erase_if(saved_states_,
                [&](PrefixId prefix) { return std::ranges::find(states, prefix) == states.end(); });
  rest_.clear();
  for (int32_t page = 0; page < count; ++page) {
    if (!prefixes.holds(page)) continue;
    const PrefixId prefix = prefixes.prefix(page);
    const bool has_state = std::ranges::find(states, prefix) != states.end() &&
                           std::ranges::find(saved_states_, prefix) == saved_states_.end();
    if (has_state || (!is_saved(page) && !is_followed[static_cast<size_t>(page)])) rest_.push_back(page);
  }
  is_dirty_ = false;
}

bool KvDisk::save(bool everything) {
  if (!folder_.is_writable()) return false;
  if (everything) folder_.wait_for_room();
  while (folder_.has_room()) {
    std::vector<int32_t>& pages = complete_.empty() ? rest_ : complete_;
    if (pages.empty()) {
      if (!everything || !is_dirty_) return false;
      collect();
      continue;
    }
    if (complete_.empty() && !everything) return false;
    const int32_t page = pages.back();
    const bool is_needed = cache_.prefixes().holds(page) && !is_saved(page);
    if (!is_needed || save_run(page)) {
      if (&pages == &rest_ && cache_.prefixes().holds(page)) save_state(page);
      pages.pop_back();
    }
    if (is_needed) return true;
  }
  return folder_.is_writable();
}

bool KvDisk::release() {
  const bool held = restoring_.has_value();
  restoring_.reset();
  return held;
}

// Finds the text in the folder, up to a place where a sequence can go on.
RunIndex::Found KvDisk::find(std::span<const TokenId> tokens, uint64_t scope) const {
  if (tokens.empty()) return {};
  RunIndex::Found found = folder_.find(tokens.first(tokens.size() - 1), scope);
  if (cache_.shape().states.layer_count > 0) found.pages = found.state_pages;
  return found;
}

bool KvDisk::has_more(std::span<const TokenId> tokens, uint64_t scope) const {
  return find(tokens, scope).pages > cache_.count_hits(tokens, scope).usable;
}

bool KvDisk::restore(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope, double limit_ms) {
  if (!restoring_ || restoring_->sequence != sequence) {
    release();
    if (!has_more(tokens, scope)) return false;
    begin(sequence, tokens, scope);
  }
  for (const double until = now_ms() + limit_ms; restore_page();) {
    if (now_ms() >= until) return true;
  }
  return false;
}

void KvDisk::begin(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope) {
  restoring_ = Restoring{};
  restoring_->sequence = sequence;
  restoring_->tokens.assign(tokens.begin(), tokens.end());
  restoring_->pages = cache_.open_pages(tokens, scope);
  restoring_->found = find(tokens, scope);
  const std::vector<RunId>& runs = restoring_->found.runs;
  const auto first = std::ssize(restoring_->pages.pages()) / run_pages_;
  for (int64_t number = first; number < std::min(first + kReadAhead, std::ssize(runs)); ++number)
    folder_.prepare_to_open(runs[static_cast<size_t>(number)]);
}

// Loads a run on a thread, if there is such a run. `memory` of an earlier run is used again: new memory would
// be cleared first.
void KvDisk::load_ahead(int64_t number, std::vector<std::byte> memory) {
  const std::vector<RunId>& runs = restoring_->found.runs;
  if (number >= std::ssize(runs)) return;
  if (number + kReadAhead < std::ssize(runs))
    folder_.prepare_to_open(runs[static_cast<size_t>(number + kReadAhead)]);
  // Where there is no thread, it is loaded when it is taken.
  restoring_->ahead =
      std::async(std::launch::async | std::launch::deferred,
                 [this, id = runs[static_cast<size_t>(number)], memory = std::move(memory)]() mutable {
                   return load(id, std::move(memory));
                 });
  restoring_->ahead_number = number;
}

void KvDisk::take_run(int64_t number) {
  if (restoring_->ahead_number != number) load_ahead(number, {});
  LoadedRun before = std::exchange(restoring_->run, restoring_->ahead.get());
  restoring_->run_number = number;
  load_ahead(number + 1, std::move(before.bytes));
}

KvDisk::LoadedRun KvDisk::load(const RunId& id, std::vector<std::byte> memory) try {
  LoadedRun loaded{.bytes = std::move(memory)};
  const std::optional<RunFile> file = folder_.open(id);
  if (!file) return loaded;
  folder_.mark_used(id);
  const auto pages = std::ssize(file->run().tokens) / cache_.shape().page_size;
  const bool fits = page_bytes_ == 0 || (file->part_bytes() == page_bytes_ && file->part_count() == pages);
  const auto bytes = static_cast<size_t>(pages * page_bytes_);
  if (fits && loaded.bytes.size() < bytes) loaded.bytes.resize(bytes);
  const auto page = [&](int64_t index) {
    return std::span(loaded.bytes)
        .subspan(static_cast<size_t>(index * page_bytes_), static_cast<size_t>(page_bytes_));
  };
  while (fits && loaded.pages < pages && (page_bytes_ == 0 || file->read(loaded.pages, page(loaded.pages))))
    ++loaded.pages;
  if (loaded.pages < pages) folder_.remove_damaged(id);
  return loaded;
} catch (const std::bad_alloc&) {
  return {};
}

// Brings the next page back. False: it was the last one, or cannot be brought back.
bool KvDisk::restore_page() {
  Restoring& restoring = *restoring_;
  const int64_t number = std::ssize(restoring.pages.pages());
  if (number >= restoring.found.pages) return restore_state(), false;
  if (cache_.available_pages() == 0) return false;
  if (restoring.run_number != number / run_pages_) take_run(number / run_pages_);
  const int64_t place = number % run_pages_;
  if (place >= restoring.run.pages) return false;
  const auto page_size = static_cast<size_t>(cache_.shape().page_size);
  const auto tokens = std::span(restoring.tokens).subspan(static_cast<size_t>(number) * page_size, page_size);
  const int32_t page =
      cache_.adopt(restoring.pages, tokens, restoring.run.bytes.data() + place * page_bytes_);
  saved_[static_cast<size_t>(page)] = {cache_.prefixes().prefix(page),
                                       restoring.found.runs[static_cast<size_t>(restoring.run_number)]};
  return true;
}

void KvDisk::restore_state() {
  const RunIndex::Found& found = restoring_->found;
  if (found.state == kNoRun) return;
  const std::optional<RunFile> file = folder_.open(found.state);
  if (!file) return;
  folder_.mark_used(found.state);
  std::vector<std::byte> bytes(static_cast<size_t>(file->part_bytes()));
  const std::optional<StateCheckpoints::Copy> copy =
      file->part_count() == 1 && file->read(0, bytes) ? state_of(bytes, cache_.states()) : std::nullopt;
  if (!copy) return folder_.remove_damaged(found.state);
  const PrefixId prefix =
      cache_.prefixes().prefix(restoring_->pages.pages()[static_cast<size_t>(found.state_pages) - 1]);
  if (cache_.checkpoints().load(prefix, *copy)) saved_states_.push_back(prefix);
}

}  // namespace outrider
