// SPDX-License-Identifier: Apache-2.0
#include "kv/disk/kv_disk.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "kv/disk/state_bytes.h"

namespace outrider {
namespace {

constexpr int64_t kMostPages = 256;  // of a run
constexpr size_t kLoaders = 4;       // threads that load runs, of which some wait for the disk

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
  const double until = now_ms() + limit_ms;
  if (!restoring_ || restoring_->sequence != sequence) {
    release();
    if (!has_more(tokens, scope)) return false;
    begin(sequence, tokens, scope);
  }
  while (!restoring_->runs.empty()) {
    if (waits_until(until)) return true;
    take_run();
  }
  if (restored_pages() == restoring_->found.pages) restore_state();
  return false;
}

void KvDisk::begin(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope) {
  restoring_ = Restoring{};
  restoring_->sequence = sequence;
  restoring_->tokens.assign(tokens.begin(), tokens.end());
  restoring_->pages = cache_.open_pages(tokens, scope);
  restoring_->found = find(tokens, scope);
  restoring_->next = std::ssize(restoring_->pages.pages());
  while (restoring_->runs.size() < kLoaders && restoring_->next < restoring_->found.pages) {
    const int64_t before = restoring_->next;
    load_next();
    if (restoring_->next == before) return;
  }
}

// Lets a thread load the pages that come next, to the end of their run, as far as there is room.
void KvDisk::load_next() {
  Restoring& restoring = *restoring_;
  const std::vector<RunId>& runs = restoring.found.runs;
  const int64_t number = restoring.next / run_pages_, first = restoring.next % run_pages_;
  const int64_t wanted = std::min(restoring.found.pages - restoring.next, run_pages_ - first);
  if (wanted <= 0) return;
  RunPages run{.run = runs[static_cast<size_t>(number)],
               .first = first,
               .pages = cache_.reserve_pages(restoring.pages, wanted)};
  if (run.pages.empty()) return;
  const auto count = std::ssize(run.pages);
  restoring.next += count;
  // Where there is no thread, it is loaded when it is taken.
  restoring.runs.push_back({.run = runs[static_cast<size_t>(number)],
                            .pages = count,
                            .loaded = std::async(std::launch::async | std::launch::deferred,
                                                 [this, run = std::move(run)] { return load(run); })});
}

// Whether the next run is still being loaded at that time.
bool KvDisk::waits_until(double time_ms) {
  const std::chrono::duration<double, std::milli> left(std::max(time_ms - now_ms(), 0.0));
  return restoring_->runs.front().loaded.wait_for(left) == std::future_status::timeout;
}

void KvDisk::take_run() {
  Restoring& restoring = *restoring_;
  LoadingRun run = std::move(restoring.runs.front());
  restoring.runs.pop_front();
  if (adopt(run, run.loaded.get())) return load_next();
  restoring.runs.clear();  // waits for them
}

KvDisk::LoadedPages KvDisk::load(const RunPages& run) try {
  const std::optional<RunFile> file = folder_.open(run.run);
  if (!file) return {};
  folder_.mark_used(run.run);
  const auto pages = std::ssize(file->run().tokens) / cache_.shape().page_size;
  const bool fits = pages >= run.first + std::ssize(run.pages) &&
                    (page_bytes_ == 0 || (file->part_bytes() == page_bytes_ && file->part_count() == pages));
  LoadedPages loaded;
  if (fits) loaded = load_pages(*file, run);
  if (loaded.count < std::ssize(run.pages)) folder_.remove_damaged(run.run);
  return loaded;
} catch (const std::bad_alloc&) {
  return {};
}

KvDisk::LoadedPages KvDisk::load_pages(const RunFile& file, const RunPages& run) {
  const auto count = std::ssize(run.pages);
  if (page_bytes_ == 0) return {.count = count, .bytes = {}};
  const bool keeps = !cache_.storage().loads_on_any_thread();
  LoadedPages loaded;
  loaded.bytes.resize(static_cast<size_t>(page_bytes_ * (keeps ? count : 1)));
  for (; loaded.count < count; ++loaded.count) {
    const std::span<std::byte> bytes =
        std::span(loaded.bytes)
            .subspan(static_cast<size_t>(keeps ? loaded.count * page_bytes_ : 0),
                     static_cast<size_t>(page_bytes_));
    if (!file.read(run.first + loaded.count, bytes)) break;
    if (!keeps) put(run.pages[static_cast<size_t>(loaded.count)], bytes.data());
  }
  if (!keeps) loaded.bytes.clear();
  return loaded;
}

void KvDisk::put(int32_t page, const std::byte* entries) {
  const int64_t page_size = cache_.shape().page_size;
  const std::lock_guard lock(putting_);
  cache_.storage().load(page * page_size, page_size, entries);
}

int64_t KvDisk::restored_pages() const {
  return std::ssize(restoring_->pages.tokens()) / cache_.shape().page_size;
}

// False: not all of its pages are whole.
bool KvDisk::adopt(const LoadingRun& run, const LoadedPages& loaded) {
  Restoring& restoring = *restoring_;
  const auto page_size = static_cast<size_t>(cache_.shape().page_size);
  for (int64_t i = 0; i < loaded.count; ++i) {
    const auto number = static_cast<size_t>(restored_pages());
    if (!loaded.bytes.empty()) put(restoring.pages.pages()[number], loaded.bytes.data() + i * page_bytes_);
    const auto tokens = std::span(restoring.tokens).subspan(number * page_size, page_size);
    const int32_t page = cache_.adopt(restoring.pages, tokens);
    saved_[static_cast<size_t>(page)] = {cache_.prefixes().prefix(page), run.run};
  }
  return loaded.count == run.pages;
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
