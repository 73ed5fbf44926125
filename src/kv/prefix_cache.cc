// SPDX-License-Identifier: Apache-2.0
#include "kv/prefix_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/counter_rng.h"

namespace outrider {

PrefixCache::PrefixCache(int64_t page_count, int page_size, int hash_bits)
    : page_size_(static_cast<size_t>(page_size)),
      hash_mask_(hash_bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << hash_bits) - 1),
      entries_(static_cast<size_t>(page_count)),
      tokens_(static_cast<size_t>(page_count) * page_size_),
      chains_(std::bit_ceil(static_cast<size_t>(page_count) + 1), -1) {}

std::span<const TokenId> PrefixCache::tokens(int32_t page) const {
  return std::span(tokens_).subspan(static_cast<size_t>(page) * page_size_, page_size_);
}

uint64_t PrefixCache::hash(const Place& place, std::span<const TokenId> tokens) const {
  uint64_t state = mix64(place.scope) ^ (place.before * 0x9E3779B97F4A7C15ull);
  for (const TokenId token : tokens) {
    state = (state ^ static_cast<uint32_t>(token)) * 0xD6E8FEB86659FD93ull;
    state ^= state >> 32;
  }
  return state & hash_mask_;
}

std::optional<PrefixCache::Hit> PrefixCache::find(const Place& place, std::span<const TokenId> tokens) const {
  const uint64_t wanted = hash(place, tokens);
  for (int32_t page = chains_[wanted & (chains_.size() - 1)]; page >= 0;) {
    const Entry& entry = entries_[static_cast<size_t>(page)];
    if (entry.hash == wanted && entry.place == place && std::ranges::equal(this->tokens(page), tokens)) {
      return Hit{page, entry.prefix};
    }
    page = entry.next;
  }
  return std::nullopt;
}

int32_t PrefixCache::page_before(int32_t page) const {
  const Entry& entry = entries_[static_cast<size_t>(page)];
  const bool is_there = entry.page_before >= 0 && prefix(entry.page_before) == entry.place.before;
  return is_there ? entry.page_before : -1;
}

int32_t PrefixCache::index_after(const Place& place, int32_t page_before) const {
  if (place.before == kEmptyPrefix) return 0;
  return page_before < 0 || index(page_before) < 0 ? -1 : index(page_before) + 1;
}

PrefixCache::Hit PrefixCache::publish(const Place& place, std::span<const TokenId> tokens, int32_t page,
                                      int32_t page_before) {
  if (const auto hit = find(place, tokens)) return *hit;
  Entry& entry = entries_[static_cast<size_t>(page)];
  const uint64_t hashed = hash(place, tokens);
  entry = {.place = place,
           .prefix = ++last_prefix_,
           .hash = hashed,
           .next = std::exchange(chain(hashed), page),
           .page_before = page_before,
           .index = index_after(place, page_before)};
  ++size_;
  std::ranges::copy(tokens, tokens_.begin() + static_cast<std::ptrdiff_t>(page * page_size_));
  return {page, entry.prefix};
}

void PrefixCache::forget(int32_t page) {
  if (!holds(page)) return;
  Entry& entry = entries_[static_cast<size_t>(page)];
  int32_t* link = &chain(entry.hash);
  while (*link != page) link = &entries_[static_cast<size_t>(*link)].next;
  *link = entry.next;
  entry = {};
  --size_;
}

}  // namespace outrider
