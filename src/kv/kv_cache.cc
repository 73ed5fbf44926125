// SPDX-License-Identifier: Apache-2.0
#include "kv/kv_cache.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "base/check.h"

namespace outrider {
namespace {

const KvShape& checked(const KvShape& shape) {
  OUTRIDER_CHECK(shape.layer_count >= 0 && shape.kv_head_count >= 0 && shape.head_dim >= 0);
  OUTRIDER_CHECK(shape.page_size >= 1 && shape.page_count >= 0 && shape.window >= 0);
  OUTRIDER_CHECK(shape.type == DType::kF32 || shape.type == DType::kBF16 || shape.type == DType::kF16 ||
                 shape.type == DType::kE4M3 || shape.type == DType::kQ8_0);
  // Slots are numbered with 32 bits.
  if (shape.page_count > std::numeric_limits<int32_t>::max() / shape.page_size) throw std::bad_alloc();
  return shape;
}

}  // namespace

KvSequence::~KvSequence() {
  if (cache_ != nullptr) cache_->close(*this);
}

KvSequence::KvSequence(KvSequence&& other) noexcept { *this = std::move(other); }

KvSequence& KvSequence::operator=(KvSequence&& other) noexcept {
  if (this == &other) return *this;
  OUTRIDER_CHECK(staged_ == 0 && other.staged_ == 0);
  if (cache_ != nullptr) cache_->close(*this);
  cache_ = std::exchange(other.cache_, nullptr);
  pages_ = std::move(other.pages_);
  first_page_ = std::exchange(other.first_page_, 0);
  tokens_ = std::move(other.tokens_);
  prefixes_ = std::move(other.prefixes_);
  scope_ = other.scope_;
  adapters_ = std::move(other.adapters_);
  state_ = std::exchange(other.state_, kNoState);
  kept_updates_ = std::exchange(other.kept_updates_, 0);
  branch_ = std::exchange(other.branch_, 0);
  checkpointed_ = std::exchange(other.checkpointed_, 0);
  had_chain_ = other.had_chain_;
  prompt_checkpoint_ = other.prompt_checkpoint_;
  text_checkpoint_ = other.text_checkpoint_;
  other.pages_.clear();
  other.tokens_.clear();
  other.prefixes_.clear();
  if (cache_ != nullptr) {
    std::ranges::replace(cache_->sequences_, const_cast<const KvSequence*>(&other), this);
  }
  return *this;
}

void KvSequence::reserve(int64_t entries) {
  OUTRIDER_CHECK(cache_ != nullptr);
  tokens_.reserve(static_cast<size_t>(entries));
  pages_.reserve(static_cast<size_t>(cache_->pages_for(entries)));
  prefixes_.reserve(static_cast<size_t>(cache_->pages_for(entries)));
}

KvTransaction::~KvTransaction() {
  if (sequence_ != nullptr) sequence_->cache_->finish(*sequence_);
}

KvTransaction::KvTransaction(KvTransaction&& other) noexcept
    : sequence_(std::exchange(other.sequence_, nullptr)), count_(std::exchange(other.count_, 0)) {}

KvTransaction& KvTransaction::operator=(KvTransaction&& other) noexcept {
  std::swap(sequence_, other.sequence_);
  std::swap(count_, other.count_);
  return *this;
}

int32_t KvTransaction::slot(int i) const {
  OUTRIDER_DCHECK(i >= 0 && i < count_);
  return static_cast<int32_t>(sequence_->cache_->slot_of(*sequence_, sequence_->length() + i));
}

Status KvTransaction::extend(int count) {
  OUTRIDER_CHECK(sequence_ != nullptr && count >= count_);
  KvCache& cache = *sequence_->cache_;
  const int64_t pages = cache.pages_for(sequence_->length() + int64_t{count});
  OUTRIDER_RETURN_IF_ERROR(cache.check_available(pages - std::ssize(sequence_->pages_)));
  cache.take_pages(*sequence_, count);
  count_ = count;
  return {};
}

void KvTransaction::copy(int from, int to) {
  KvCache& cache = *sequence_->cache_;
  cache.move_rows({slot(from), slot(to), 1});
  const int32_t kept = sequence_->kept_updates_;
  if (sequence_->state_ != KvSequence::kNoState)
    cache.states_.copy_update(sequence_->state_, kept + from, kept + to);
}

void KvTransaction::commit(std::span<const int> path, std::span<const TokenId> tokens) {
  OUTRIDER_CHECK(sequence_ != nullptr && path.size() == tokens.size());
  KvCache& cache = *sequence_->cache_;
  const int64_t length = sequence_->length();
  for (size_t i = 0; i < path.size(); ++i) {
    OUTRIDER_CHECK(path[i] < count_ && path[i] > (i == 0 ? -1 : path[i - 1]));
    const auto to = static_cast<int64_t>(i);
    // The path ascends, so a row is never overwritten before it has been moved.
    if (path[i] == to) continue;
    cache.move_rows({cache.slot_of(*sequence_, length + path[i]), cache.slot_of(*sequence_, length + to), 1});
  }
  if (sequence_->state_ != KvSequence::kNoState) cache.commit_updates(*sequence_, path);
  sequence_->tokens_.insert(sequence_->tokens_.end(), tokens.begin(), tokens.end());
  cache.finish(*sequence_);
  sequence_ = nullptr;
  count_ = 0;
}

KvCache::KvCache(const KvShape& shape, const KvOptions& options)
    : KvCache(shape, options, std::make_unique<HostPages>(checked(shape))) {}

KvCache::KvCache(const KvShape& shape, const KvOptions& options, std::unique_ptr<KvStorage> storage)
    : shape_(checked(shape)),
      options_(options),
      pool_(shape.page_count),
      prefixes_(shape.page_count, shape.page_size, options.hash_bits),
      storage_(std::move(storage)),
      host_pages_(dynamic_cast<HostPages*>(storage_.get())),
      states_(shape.states, storage_->states()),
      checkpoints_(&states_, shape.states.checkpoint_count) {
  if (options_.poison) storage_->poison(0, slot_count());
}

KvCache::~KvCache() { OUTRIDER_CHECK(sequences_.empty()); }

// Calls take(hit) for every cached page that begins `tokens`, as long as a token is left beyond them.
template <typename Take>
void KvCache::for_each_hit(std::span<const TokenId> tokens, uint64_t scope, Take&& take) const {
  const auto page_size = static_cast<size_t>(shape_.page_size);
  PrefixCache::Place place{.scope = scope};
  for (size_t end = page_size; end < tokens.size(); end += page_size) {
    const auto hit = prefixes_.find(place, tokens.subspan(end - page_size, page_size));
    if (!hit) return;
    place.before = hit->prefix;
    take(*hit);
  }
}

KvCache::Hits KvCache::count_hits(std::span<const TokenId> tokens, uint64_t scope) const {
  Hits hits;
  for_each_hit(tokens, scope, [&](const PrefixCache::Hit& hit) {
    ++hits.found;
    if (!has_states() || checkpoints_.has(hit.prefix)) hits.usable = hits.found;
  });
  return hits;
}

KvCache::Hits KvCache::share_prefix(KvSequence& sequence, std::span<const TokenId> tokens, uint64_t scope) {
  sequence.scope_ = scope;
  const Hits hits = count_hits(tokens, scope);
  share_pages(sequence, tokens, hits.usable);
  return hits;
}

// Gives an empty sequence the first `count` of the cached pages that begin `tokens`.
void KvCache::share_pages(KvSequence& sequence, std::span<const TokenId> tokens, int32_t count) {
  for_each_hit(tokens, sequence.scope_, [&](const PrefixCache::Hit& hit) {
    if (std::ssize(sequence.pages_) == count) return;
    pool_.share(hit.page);
    sequence.pages_.push_back(hit.page);
    sequence.prefixes_.push_back(hit.prefix);
  });
  sequence.tokens_.assign(tokens.begin(), tokens.begin() + std::ptrdiff_t{count} * shape_.page_size);
}

KvSequence KvCache::open_pages(std::span<const TokenId> tokens, uint64_t scope) {
  KvSequence sequence;
  sequence.cache_ = this;
  sequence.scope_ = scope;
  sequences_.push_back(&sequence);
  share_pages(sequence, tokens, count_hits(tokens, scope).found);
  return sequence;
}

std::vector<int32_t> KvCache::reserve_pages(KvSequence& sequence, int64_t count) {
  OUTRIDER_CHECK(sequence.cache_ == this && sequence.state_ == KvSequence::kNoState && sequence.staged_ == 0);
  OUTRIDER_CHECK(sequence.length() % shape_.page_size == 0);
  std::vector<int32_t> pages;
  pages.reserve(static_cast<size_t>(count));
  sequence.pages_.reserve(sequence.pages_.size() + static_cast<size_t>(count));
  while (std::ssize(pages) < count && available_pages() > 0) {
    pages.push_back(take_page());
    sequence.pages_.push_back(pages.back());
    ++sequence.reserved_;
  }
  return pages;
}

int32_t KvCache::adopt(KvSequence& sequence, std::span<const TokenId> tokens) {
  OUTRIDER_CHECK(sequence.cache_ == this && sequence.reserved_ > 0 && std::ssize(tokens) == shape_.page_size);
  sequence.tokens_.insert(sequence.tokens_.end(), tokens.begin(), tokens.end());
  --sequence.reserved_;
  publish_full_pages(sequence);
  return sequence.pages_[sequence.prefixes_.size() - 1];
}

KvSequence KvCache::open(std::span<const TokenId> tokens, uint64_t scope) {
  KvSequence sequence;
  sequence.cache_ = this;
  sequences_.push_back(&sequence);
  const Hits hits = share_prefix(sequence, tokens, scope);
  if (!has_states()) return sequence;
  sequence.state_ = states_.take();
  if (hits.usable > 0) restore_checkpoint(sequence, sequence.pages_.size());
  if (hits.usable < hits.found) sequence.branch_ = hits.found * shape_.page_size;
  return sequence;
}

void KvCache::reopen(KvSequence& sequence, std::span<const TokenId> tokens, uint64_t scope) {
  OUTRIDER_CHECK(sequence.cache_ == this && sequence.staged_ == 0 && !has_states());
  forget_all(sequence);
  share_prefix(sequence, tokens, scope);
}

void KvCache::forget(std::span<const TokenId> tokens, uint64_t scope) {
  KvSequence pages = open_pages(tokens, scope);
  for (const int32_t page : pages.pages()) {
    if (pool_.references(page) == 1) prefixes_.forget(page);
  }
}

KvCache::Cached KvCache::find(std::span<const TokenId> tokens, uint64_t scope) const {
  Cached cached;
  const int64_t usable = int64_t{count_hits(tokens, scope).usable} * shape_.page_size;
  for_each_hit(tokens, scope, [&](const PrefixCache::Hit& hit) {
    if (cached.length == usable) return;
    cached.length += shape_.page_size;
    cached.idle_pages += pool_.references(hit.page) == 0 ? 1 : 0;
  });
  return cached;
}

Result<KvTransaction> KvCache::stage(KvSequence& sequence, int count) {
  OUTRIDER_CHECK(sequence.cache_ == this && sequence.staged_ == 0 && count >= 1);
  OUTRIDER_RETURN_IF_ERROR(check_available(pages_needed(sequence, count)));
  if (writes_into_published_page(sequence)) own_last_page(sequence);
  take_pages(sequence, count);
  return KvTransaction(&sequence, count);
}

Status KvCache::check_available(int64_t needed) const {
  if (needed <= available_pages()) return {};
  return resource_error("expected " + std::to_string(needed) + " free pages of the key-value cache, found " +
                        std::to_string(available_pages()) +
                        "; finish other sequences first, or give the cache more memory");
}

void KvCache::take_pages(KvSequence& sequence, int count) {
  const auto pages = static_cast<size_t>(pages_for(sequence.length() + int64_t{count}));
  while (sequence.pages_.size() < pages) sequence.pages_.push_back(take_page());
  sequence.staged_ = count;
}

void KvCache::rewind(KvSequence& sequence, int32_t length) {
  OUTRIDER_CHECK(sequence.cache_ == this && sequence.staged_ == 0);
  OUTRIDER_CHECK(length >= 0 && length <= sequence.length());
  const bool holds_later = has_states() && states_.max_entries(sequence.state_) > length;
  if (holds_later) length = checkpoint_before(sequence, length);
  if (first_seen_page(length) < sequence.first_page_ || (holds_later && length == 0)) {
    forget_all(sequence);
    length = 0;
  } else if (holds_later) {
    restore_checkpoint(sequence, static_cast<size_t>(length / shape_.page_size));
  } else if (has_states()) {
    sequence.kept_updates_ -= sequence.length() - length;
  }
  sequence.tokens_.resize(static_cast<size_t>(length));
  sequence.prefixes_.resize(
      std::min(sequence.prefixes_.size(), static_cast<size_t>(length / shape_.page_size)));
  finish(sequence);
}

int64_t KvCache::available_pages() const { return pool_.available(); }

int64_t KvCache::pages_needed(const KvSequence& sequence, int count) const {
  if (count <= 0) return 0;
  const int64_t held = pages_for(sequence.length());
  int64_t needed = pages_for(sequence.length() + int64_t{count}) - held;
  if (writes_into_published_page(sequence) && pool_.references(sequence.pages_.back()) > 1) ++needed;
  return needed;
}

int64_t KvCache::slot_of(const KvSequence& sequence, int64_t entry) const {
  return int64_t{sequence.pages_[static_cast<size_t>(entry / shape_.page_size)]} * shape_.page_size +
         entry % shape_.page_size;
}

bool KvCache::writes_into_published_page(const KvSequence& sequence) const {
  if (sequence.length() % shape_.page_size == 0) return false;
  const int32_t page = sequence.pages_[static_cast<size_t>(sequence.length() / shape_.page_size)];
  return pool_.references(page) > 1 || prefixes_.holds(page);
}

int32_t KvCache::take_page() {
  const int32_t page = pool_.take();
  if (watcher_ != nullptr && prefixes_.holds(page)) watcher_->evicted(page);
  prefixes_.forget(page);
  if (options_.poison) poison_page(page);
  return page;
}

// Later pages are released first, so that the end of a kept text is evicted before its beginning.
void KvCache::release_pages(KvSequence& sequence, size_t keep) {
  while (sequence.pages_.size() > keep) {
    const int32_t page = sequence.pages_.back();
    sequence.pages_.pop_back();
    if (page != KvSequence::kNoPage) release_page(page);
  }
}

size_t KvCache::first_seen_page(int64_t length) const {
  if (shape_.window == 0) return 0;
  return static_cast<size_t>(std::max<int64_t>(length + 1 - shape_.window, 0) / shape_.page_size);
}

// A page more than the window is kept, so that a sequence can be rewound by some entries.
void KvCache::release_unseen_pages(KvSequence& sequence) {
  const size_t seen = first_seen_page(sequence.length());
  while (sequence.first_page_ + 1 < seen) {
    release_page(std::exchange(sequence.pages_[sequence.first_page_], KvSequence::kNoPage));
    ++sequence.first_page_;
  }
}

void KvCache::release_page(int32_t page) {
  pool_.release(page, prefixes_.holds(page));
  if (options_.poison && pool_.references(page) == 0 && !pool_.kept(page)) {
    poison_page(page);
  }
}

void KvCache::own_last_page(KvSequence& sequence) {
  int32_t& page = sequence.pages_.back();
  if (pool_.references(page) == 1) {
    prefixes_.forget(page);
    return;
  }
  const int32_t copy = take_page();
  move_rows({.from = int64_t{page} * shape_.page_size,
             .to = int64_t{copy} * shape_.page_size,
             .count = sequence.length() % shape_.page_size});
  pool_.release(page, prefixes_.holds(page));
  page = copy;
}

void KvCache::move_rows(const KvMove& move) {
  if (moves_ != nullptr) moves_->push_back(move);
  storage_->move(move);
}

void KvCache::poison_page(int32_t page) {
  storage_->poison(int64_t{page} * shape_.page_size, shape_.page_size);
}

HostPages& KvCache::host_pages() {
  OUTRIDER_CHECK(host_pages_ != nullptr);
  return *host_pages_;
}

// Where another sequence has published the same page, it replaces this sequence's own page, because its
// entries have the same bits. Therefore a sequence that holds a page holds the findable pages before it, and
// the end of a kept text is evicted before its beginning.
void KvCache::publish_full_pages(KvSequence& sequence) {
  const auto page_size = static_cast<size_t>(shape_.page_size);
  while ((sequence.prefixes_.size() + 1) * page_size <= sequence.tokens_.size()) {
    const size_t index = sequence.prefixes_.size();
    const PrefixCache::Place place{.scope = sequence.scope_,
                                   .before = index == 0 ? kEmptyPrefix : sequence.prefixes_.back()};
    const auto tokens = std::span(sequence.tokens_).subspan(index * page_size, page_size);
    int32_t& page = sequence.pages_[index];
    const int32_t before = index == 0 ? -1 : sequence.pages_[index - 1];
    const PrefixCache::Hit found = prefixes_.publish(place, tokens, page, before);
    sequence.prefixes_.push_back(found.prefix);
    if (watcher_ != nullptr && found.page == page) watcher_->published(page);
    if (found.page == page) continue;
    pool_.share(found.page);
    release_page(std::exchange(page, found.page));
  }
}

void KvCache::forget_all(KvSequence& sequence) {
  release_pages(sequence, 0);
  sequence.first_page_ = 0;
  sequence.tokens_.clear();
  sequence.prefixes_.clear();
  sequence.kept_updates_ = sequence.checkpointed_ = 0;
  if (sequence.state_ != KvSequence::kNoState) states_.reset(sequence.state_);
}

// The pass over a chain has applied all entries but the last, with its update in the place of a first staged
// entry's update.
void KvCache::commit_updates(KvSequence& sequence, std::span<const int> path) {
  if (path.empty()) return;
  const int32_t id = sequence.state_;
  const int32_t held = states_.max_entries(id);
  OUTRIDER_CHECK(states_.min_entries(id) == held && held >= sequence.length());
  const int32_t applied = held - sequence.length();
  sequence.had_chain_ = applied > 0;
  const int32_t before = std::exchange(sequence.kept_updates_, 0);
  for (size_t i = static_cast<size_t>(applied); i < path.size(); ++i)
    states_.copy_update(id, before + path[i] - applied, sequence.kept_updates_++);
}

// The first kept update belongs to entry length() - kept_updates(), whatever the state holds. The last page
// of a prompt may be cut short by its end, and is worth a checkpoint beside the one of the page before it.
void KvCache::keep_checkpoint(KvSequence& sequence) {
  const auto& prefixes = sequence.prefixes_;
  if (prefixes.empty()) return;
  const auto end = static_cast<int32_t>(prefixes.size()) * shape_.page_size;
  const int32_t held = states_.max_entries(sequence.state_);
  if (held > end || held != states_.min_entries(sequence.state_)) return;
  const bool ends_prompt = prefixes.size() > 1 && prefixes.end()[-2] == sequence.prompt_checkpoint_;
  PrefixId& last =
      sequence.had_chain_ && !ends_prompt ? sequence.prompt_checkpoint_ : sequence.text_checkpoint_;
  const int32_t updates = end - (sequence.length() - sequence.kept_updates_);
  if (!checkpoints_.keep(prefixes.back(), sequence.state_, updates, last)) return;
  last = end == sequence.branch_ ? kEmptyPrefix : prefixes.back();  // the update of a branch stays
  sequence.checkpointed_ = end;
}

void KvCache::restore_checkpoint(KvSequence& sequence, size_t pages) {
  sequence.kept_updates_ = checkpoints_.restore(sequence.prefixes_[pages - 1], sequence.state_);
  sequence.checkpointed_ = static_cast<int32_t>(pages) * shape_.page_size;
}

int32_t KvCache::checkpoint_before(const KvSequence& sequence, int32_t length) const {
  for (auto pages = static_cast<size_t>(length / shape_.page_size); pages > 0; --pages) {
    if (checkpoints_.has(sequence.prefixes_[pages - 1]))
      return static_cast<int32_t>(pages) * shape_.page_size;
  }
  return 0;
}

// Ends a transaction or a rewind: only pages of committed entries stay.
void KvCache::finish(KvSequence& sequence) {
  sequence.staged_ = 0;
  if (sequence.state_ != KvSequence::kNoState) {
    if (states_.max_entries(sequence.state_) > sequence.length()) forget_all(sequence);
    if (options_.poison) states_.poison_updates(sequence.state_, sequence.kept_updates_);
  }
  publish_full_pages(sequence);
  if (has_states()) keep_checkpoint(sequence);
  release_pages(sequence, static_cast<size_t>(pages_for(sequence.length())));
  release_unseen_pages(sequence);
  const int64_t in_last_page = sequence.length() % shape_.page_size;
  if (options_.poison && in_last_page != 0 && !writes_into_published_page(sequence)) {
    storage_->poison(slot_of(sequence, sequence.length()), shape_.page_size - in_last_page);
  }
}

void KvCache::close(KvSequence& sequence) {
  OUTRIDER_CHECK(sequence.staged_ == 0);
  release_pages(sequence, 0);
  sequence.reserved_ = 0;
  if (sequence.state_ != KvSequence::kNoState) states_.release(std::exchange(sequence.state_, -1));
  std::erase(sequences_, &sequence);
  sequence.cache_ = nullptr;
}

}  // namespace outrider
