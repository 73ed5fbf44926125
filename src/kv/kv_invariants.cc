// SPDX-License-Identifier: Apache-2.0
// The recount of a KvCache, for tests and debug builds.
#include <algorithm>
#include <string>
#include <utility>

#include "kv/kv_cache.h"

namespace outrider {
namespace {

Error broken(const std::string& what, int64_t expected, int64_t found) {
  return resource_error("key-value cache: expected " + what + " " + std::to_string(expected) + ", found " +
                        std::to_string(found) + "; this is a bug in the cache");
}

}  // namespace

Status KvCache::check_sequence(const KvSequence& sequence) const {
  const int64_t length = sequence.length();
  const auto held = static_cast<int64_t>(sequence.pages_.size());
  const int64_t expected = pages_for(length + sequence.staged_) + sequence.reserved_;
  if (held != expected) return broken("pages of a sequence", expected, held);
  if (static_cast<int64_t>(sequence.prefixes_.size()) != length / shape_.page_size) {
    return broken("full pages of a sequence", length / shape_.page_size,
                  static_cast<int64_t>(sequence.prefixes_.size()));
  }
  for (int64_t index = 0; index < held; ++index) {
    const int32_t page = sequence.pages_[static_cast<size_t>(index)];
    const bool is_given_back = std::cmp_less(index, sequence.first_page_);
    if (is_given_back != (page == KvSequence::kNoPage))
      return broken("pages given back at the beginning of a sequence", std::ssize(sequence.pages_), index);
    if (is_given_back) continue;
    const int64_t begin = index * shape_.page_size;
    const int64_t committed = std::clamp(length - begin, int64_t{0}, int64_t{shape_.page_size});
    const bool writable = sequence.staged_ > 0 && committed < shape_.page_size;
    if (writable && (pool_.references(page) != 1 || prefixes_.holds(page))) {
      return broken("references to a page with staged entries", 1, pool_.references(page));
    }
    if (index < length / shape_.page_size && !prefixes_.holds(page)) {
      return broken("full pages that are found, of those before page", page, index);
    }
    if (!prefixes_.holds(page)) continue;
    if (prefixes_.scope(page) != sequence.scope_) {
      return broken("the scope of page " + std::to_string(page), static_cast<int64_t>(sequence.scope_),
                    static_cast<int64_t>(prefixes_.scope(page)));
    }
    const auto own =
        std::span(sequence.tokens_).subspan(static_cast<size_t>(begin), static_cast<size_t>(committed));
    if (!std::ranges::equal(own, prefixes_.tokens(page).first(own.size()))) {
      return resource_error("key-value cache: page " + std::to_string(page) +
                            " is found under other tokens than it holds; this is a bug in the cache");
    }
  }
  return {};
}

Status KvCache::check_invariants() const {
  std::vector<int32_t> references(static_cast<size_t>(shape_.page_count));
  for (const KvSequence* sequence : sequences_) {
    for (const int32_t page : sequence->pages_) {
      if (page != KvSequence::kNoPage) ++references[static_cast<size_t>(page)];
    }
    OUTRIDER_RETURN_IF_ERROR(check_sequence(*sequence));
  }
  std::vector<int> listed(static_cast<size_t>(shape_.page_count));
  for (const int32_t page : pool_.free_pages()) ++listed[static_cast<size_t>(page)];
  for (const int32_t page : pool_.kept_pages()) ++listed[static_cast<size_t>(page)];
  int64_t published = 0;
  for (int32_t page = 0; page < shape_.page_count; ++page) {
    const auto index = static_cast<size_t>(page);
    if (references[index] != pool_.references(page)) {
      return broken("references to page " + std::to_string(page), references[index], pool_.references(page));
    }
    const int expected_lists = references[index] == 0 ? 1 : 0;
    if (listed[index] != expected_lists) {
      return broken("free or kept listings of page " + std::to_string(page), expected_lists, listed[index]);
    }
    if (references[index] == 0 && prefixes_.holds(page) != pool_.kept(page)) {
      return broken("published state of idle page " + std::to_string(page), pool_.kept(page),
                    prefixes_.holds(page));
    }
    published += prefixes_.holds(page) ? 1 : 0;
  }
  if (published != prefixes_.size()) return broken("findable pages", published, prefixes_.size());
  return {};
}

}  // namespace outrider
