// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "outrider/token.h"

namespace outrider {

// Names one beginning of a text that ends with a full page; never used twice.
using PrefixId = uint64_t;
constexpr PrefixId kEmptyPrefix = 0;

// Finds pages by the committed tokens they hold and all tokens before them, within a scope: texts of
// different scopes never meet. An entry is (scope, prefix before the page, tokens of the page); hashes only
// speed up the search, equality decides, so any hash width is right.
class PrefixCache {
 public:
  // hash_bits: 0..64; narrow ones force collisions in tests.
  PrefixCache(int64_t page_count, int page_size, int hash_bits);

  struct Hit {
    int32_t page = 0;
    PrefixId prefix = kEmptyPrefix;  // the prefix that ends with this page
  };
  // A place in the texts of one scope: right after the prefix `before`.
  struct Place {
    uint64_t scope = 0;
    PrefixId before = kEmptyPrefix;
    bool operator==(const Place&) const = default;
  };
  // The page that holds `tokens` (one page full) at that place.
  std::optional<Hit> find(const Place& place, std::span<const TokenId> tokens) const;

  // Makes `page` findable unless another page with the same contents already is. Returns the page that find()
  // will return. `page_before` ends the prefix before the place; -1: no page does, or none that is known.
  Hit publish(const Place& place, std::span<const TokenId> tokens, int32_t page, int32_t page_before = -1);

  // Makes the page no longer findable; a page that was not findable stays so.
  void forget(int32_t page);

  bool holds(int32_t page) const { return entries_[static_cast<size_t>(page)].prefix != kEmptyPrefix; }
  // Precondition: holds(page).
  std::span<const TokenId> tokens(int32_t page) const;
  uint64_t scope(int32_t page) const { return entries_[static_cast<size_t>(page)].place.scope; }
  // The prefix that ends with the page.
  PrefixId prefix(int32_t page) const { return entries_[static_cast<size_t>(page)].prefix; }
  // Number of the page among the pages of its text, from 0 on; -1: not known.
  int32_t index(int32_t page) const { return entries_[static_cast<size_t>(page)].index; }
  // The findable page before it; -1: there is none, or it has been forgotten.
  int32_t page_before(int32_t page) const;
  int64_t size() const { return size_; }

 private:
  struct Entry {
    Place place;
    PrefixId prefix = kEmptyPrefix;  // kEmptyPrefix: not published
    uint64_t hash = 0;
    int32_t next = -1;  // page with the same chain
    int32_t page_before = -1;
    int32_t index = 0;
  };
  int32_t& chain(uint64_t hash) { return chains_[hash & (chains_.size() - 1)]; }
  uint64_t hash(const Place& place, std::span<const TokenId> tokens) const;
  int32_t index_after(const Place& place, int32_t page_before) const;

  size_t page_size_;
  uint64_t hash_mask_;
  PrefixId last_prefix_ = kEmptyPrefix;
  std::vector<Entry> entries_;   // [page_count]
  std::vector<TokenId> tokens_;  // [page_count, page_size]
  std::vector<int32_t> chains_;  // a power of two: first page of each, -1: none
  int64_t size_ = 0;
};

}  // namespace outrider
