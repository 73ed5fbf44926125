// SPDX-License-Identifier: Apache-2.0
#include "kv/prefix_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

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

uint64_t PrefixCache::hash(PrefixId before, std::span<const TokenId> tokens) const {
  uint64_t state = before * 0x9E3779B97F4A7C15ull;
  for (const TokenId token : tokens) {
    state = (state ^ static_cast<uint32_t>(token)) * 0xD6E8FEB86659FD93ull;
    state ^= state >> 32;
  }
  return state & hash_mask_;
}

std::optional<PrefixCache::Hit> PrefixCache::find(PrefixId before, std::span<const TokenId> tokens) const {
  const uint64_t wanted = hash(before, tokens);
  for (int32_t page = chains_[wanted & (chains_.size() - 1)]; page >= 0;) {
    const Entry& entry = entries_[static_cast<size_t>(page)];
    if (entry.hash == wanted && entry.before == before && std::ranges::equal(this->tokens(page), tokens)) {
      return Hit{page, entry.prefix};
    }
    page = entry.next;
  }
  return std::nullopt;
}

PrefixId PrefixCache::publish(PrefixId before, std::span<const TokenId> tokens, int32_t page) {
  if (const auto hit = find(before, tokens)) return hit->prefix;
  Entry& entry = entries_[static_cast<size_t>(page)];
  const uint64_t hashed = hash(before, tokens);
  entry = {before, ++last_prefix_, hashed, std::exchange(chain(hashed), page)};
  ++size_;
  std::ranges::copy(tokens, tokens_.begin() + static_cast<std::ptrdiff_t>(page * page_size_));
  return entry.prefix;
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
