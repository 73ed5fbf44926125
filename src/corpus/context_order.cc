// SPDX-License-Identifier: Apache-2.0
#include "corpus/context_order.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "corpus/ordered_work.h"

namespace outrider {
namespace {

// Sorts places that follow the same token.
template <typename Id>
class PlaceSorter {
 public:
  PlaceSorter(const Id* text, TokenId separator)
      : text_(text), bits_(sizeof(Id) == 2 ? 16 : std::bit_width(static_cast<uint32_t>(separator))) {}

  // Sorts by one key after the other. The keys of all runs that are still equal are read before any is
  // sorted: the reads are far apart and do not wait for each other then.
  void sort(std::span<uint32_t> places) {
    runs_.assign(1, places);
    records_.reserve(places.size());
    for (int depth = 1; !runs_.empty() && depth < kContextDepth; depth += tokens_per_key()) {
      read_keys(depth);
      equal_.clear();
      size_t begin = 0;
      for (const std::span<uint32_t> run : runs_) {
        sort_run(std::span(records_).subspan(begin, run.size()), run);
        begin += run.size();
      }
      runs_.swap(equal_);
    }
    for (const std::span<uint32_t> run : runs_) std::ranges::sort(run);
  }

 private:
  struct Record {
    uint64_t key = 0;
    uint32_t place = 0;
  };

  int tokens_per_key() const { return 64 / bits_; }

  // The tokens of context from `depth` on, as many as fit, the nearest in the highest bits.
  uint64_t key_of(uint32_t place, int depth) const {
    const Id* nearest = text_ + place - 1 - depth;
    if constexpr (sizeof(Id) == 2 && std::endian::native == std::endian::little) {
      uint64_t key = 0;
      std::memcpy(&key, nearest - 3, sizeof(key));
      return key;
    }
    uint64_t key = 0;
    for (int i = 0; i < tokens_per_key(); ++i) key = key << bits_ | static_cast<uint64_t>(*(nearest - i));
    return key;
  }

  void read_keys(int depth) {
    records_.clear();
    for (const std::span<uint32_t> run : runs_) {
      for (const uint32_t place : run) records_.push_back({key_of(place, depth), place});
    }
  }

  // Sorts a run by its keys, and notes the runs of equal ones.
  void sort_run(std::span<Record> records, std::span<uint32_t> run) {
    std::ranges::sort(records, {}, &Record::key);
    size_t begin = 0;
    for (size_t i = 0; i < records.size(); ++i) {
      run[i] = records[i].place;
      if (i + 1 < records.size() && records[i + 1].key == records[i].key) continue;
      if (i > begin) equal_.push_back(run.subspan(begin, i + 1 - begin));
      begin = i + 1;
    }
  }

  const Id* text_;
  int bits_;                                       // of a token in a key
  std::vector<std::span<uint32_t>> runs_, equal_;  // places that share their context up to some depth
  std::vector<Record> records_;                    // of all runs, one after the other
};

// Tokens whose places are sorted at once.
struct TokenRange {
  TokenId begin = 0, end = 0;
};

// Calls visit(place, the token before it) for all places.
template <typename Id, typename Visit>
void for_each_place(const Id* text, int64_t size, Id separator, Visit&& visit) {
  Id before = separator;
  for (int64_t place = kTextPadding; place < size; ++place) {
    const Id token = text[place];
    if (before != separator && token != separator) visit(place, before);
    before = token;
  }
}

template <typename Id>
const Id* ids_of(const TokenText& text) {
  return reinterpret_cast<const Id*>(text.bytes.data());
}

template <typename Id>
std::vector<uint32_t> sorted_places(const TokenText& text, std::span<const uint32_t> firsts,
                                    TokenRange range) {
  const auto first = [&](TokenId token) { return firsts[static_cast<size_t>(token)]; };
  std::vector<uint32_t> places(first(range.end) - first(range.begin));
  std::vector<uint32_t> next;
  for (TokenId token = range.begin; token < range.end; ++token)
    next.push_back(first(token) - first(range.begin));
  for_each_place(ids_of<Id>(text), text.size(), static_cast<Id>(text.separator),
                 [&](int64_t place, Id token) {
                   const auto index = static_cast<uint32_t>(token) - static_cast<uint32_t>(range.begin);
                   if (index < next.size()) places[next[index]++] = static_cast<uint32_t>(place);
                 });
  PlaceSorter<Id> sorter(ids_of<Id>(text), text.separator);
  size_t begin = 0;
  for (const uint32_t end : next) {
    sorter.sort(std::span(places).subspan(begin, end - begin));
    begin = end;
  }
  return places;
}

// The next tokens that together have at most so many places, or one that has more.
std::optional<TokenRange> next_range(std::span<const uint32_t> firsts, TokenId begin, int64_t places) {
  const auto tokens = static_cast<TokenId>(firsts.size() - 1);
  if (begin >= tokens) return std::nullopt;
  TokenId end = begin + 1;
  const uint32_t first = firsts[static_cast<size_t>(begin)];
  while (end < tokens && firsts[static_cast<size_t>(end) + 1] - first <= places) ++end;
  return TokenRange{begin, end};
}

}  // namespace

Result<std::vector<uint32_t>> count_places(const TokenText& text) {
  if (text.size() > int64_t{std::numeric_limits<uint32_t>::max()}) {
    return input_error("corpus: expected at most 4294967295 tokens, found " + std::to_string(text.size()) +
                       "; give fewer texts");
  }
  std::vector<uint32_t> firsts(static_cast<size_t>(text.separator) + 1);
  const auto count = [&](int64_t, auto token) { ++firsts[static_cast<size_t>(token) + 1]; };
  if (text.width == 2) {
    for_each_place(ids_of<uint16_t>(text), text.size(), static_cast<uint16_t>(text.separator), count);
  } else {
    for_each_place(ids_of<TokenId>(text), text.size(), text.separator, count);
  }
  for (size_t i = 1; i < firsts.size(); ++i) firsts[i] += firsts[i - 1];
  return firsts;
}

Status sort_places(const TokenText& text, std::span<const uint32_t> firsts, int threads,
                   const std::function<Status(std::span<const uint32_t>)>& take) {
  // Several parts for each thread, so that all end at about the same time.
  const int64_t part = std::min<int64_t>(kSortBytes / static_cast<int64_t>(sizeof(uint32_t)),
                                         firsts.back() / (4 * threads) + 1);
  TokenId begin = 0;
  OrderedWork work(
      [&]() -> Result<std::optional<TokenRange>> {
        const std::optional<TokenRange> range = next_range(firsts, begin, part);
        if (range) begin = range->end;
        return range;
      },
      [&](TokenRange range) -> Result<std::vector<uint32_t>> {
        return text.width == 2 ? sorted_places<uint16_t>(text, firsts, range)
                               : sorted_places<TokenId>(text, firsts, range);
      },
      [&](const std::vector<uint32_t>& places) { return take(places); });
  return work.run(threads);
}

}  // namespace outrider
