// SPDX-License-Identifier: Apache-2.0
#include "corpus/context_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "corpus/ordered_work.h"

namespace outrider {
namespace {

// Sorts places that follow the same token.
template <typename Id>
class PlaceSorter {
 public:
  // A place and the first key of its context, which begins after the token that all places here follow.
  struct Record {
    uint64_t key = 0;
    uint32_t place = 0;
  };

  PlaceSorter(const Id* text, TokenId separator)
      : text_(text), bits_(sizeof(Id) == 2 ? 16 : std::bit_width(static_cast<uint32_t>(separator))) {}

  Record record_of(uint32_t place) const { return {key_of(place, kFirstDepth), place}; }

  // Writes the places of all records in their order. Leaves the records in any.
  void sort(std::span<Record> records, std::span<uint32_t> places) {
    sort_run(records, {places, kFirstDepth});
    while (!large_.empty()) {
      const Run run = large_.back();
      large_.pop_back();
      records_.clear();
      for (const uint32_t place : run.places) records_.push_back({key_of(place, run.depth), place});
      sort_run(records_, run);
    }
    sort_small_runs();
  }

 private:
  static constexpr int kFirstDepth = 1;
  // Places to read the contexts of at once. The reads are far apart and do not wait for each other then.
  static constexpr size_t kReadAtOnce = 2048;

  // Places with contexts that are equal up to a depth.
  struct Run {
    std::span<uint32_t> places;
    int depth = 0;
  };

  // A place with all keys of its context but the first one, as far as `bits_` needs them.
  struct Context {
    std::array<uint64_t, kContextDepth * sizeof(Id) / sizeof(uint64_t) - 1> keys = {};
    uint32_t place = 0;

    auto operator<=>(const Context&) const = default;
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

  Context context_of(uint32_t place) const {
    Context context{.place = place};
    size_t count = 0;
    for (int depth = kFirstDepth + tokens_per_key(); depth < kContextDepth; depth += tokens_per_key())
      context.keys[count++] = key_of(place, depth);
    return context;
  }

  // A context lies in one or two lines of the processor's caches.
  void prefetch_context(uint32_t place) const {
    __builtin_prefetch(text_ + place - kFirstDepth);
    __builtin_prefetch(text_ + place - kContextDepth);
  }

  // Sorts the records of a run by the keys at its depth, and leaves runs of equal ones for later.
  void sort_run(std::span<Record> records, Run run) {
    sort_by_key(records);
    const int depth = run.depth + tokens_per_key();
    size_t begin = 0;
    for (size_t i = 0; i < records.size(); ++i) {
      run.places[i] = records[i].place;
      if (i + 1 < records.size() && records[i + 1].key == records[i].key) continue;
      if (i > begin) sort_later({run.places.subspan(begin, i + 1 - begin), depth});
      begin = i + 1;
    }
  }

  // By bytes from the lowest one on where there are many records: half of the time of comparisons.
  void sort_by_key(std::span<Record> records) {
    constexpr size_t kLong = 2048;
    if (records.size() < kLong) {
      std::ranges::sort(records, {}, &Record::key);
      return;
    }
    std::array<std::array<uint32_t, 256>, sizeof(uint64_t)> counts = {};
    for (const Record& record : records) {
      for (size_t byte = 0; byte < counts.size(); ++byte) ++counts[byte][record.key >> 8 * byte & 0xFF];
    }
    spare_.resize(std::max(spare_.size(), records.size()));
    // The number of passes is even, so that the last one writes to `records`.
    std::span<Record> from = records, to = std::span(spare_).first(records.size());
    for (size_t byte = 0; byte < counts.size(); ++byte) {
      std::array<uint32_t, 256>& next = counts[byte];
      std::exclusive_scan(next.begin(), next.end(), next.begin(), 0u);
      for (const Record& record : from) to[next[record.key >> 8 * byte & 0xFF]++] = record;
      std::swap(from, to);
    }
  }

  void sort_later(Run run) {
    if (run.depth >= kContextDepth) {
      std::ranges::sort(run.places);
    } else if (run.places.size() > kReadAtOnce) {
      large_.push_back(run);
    } else {
      for (const uint32_t place : run.places) prefetch_context(place);
      small_.push_back(run.places);
      small_places_ += run.places.size();
      if (small_places_ > kReadAtOnce) sort_small_runs();
    }
  }

  void sort_small_runs() {
    contexts_.clear();
    for (const std::span<uint32_t> run : small_) {
      for (const uint32_t place : run) contexts_.push_back(context_of(place));
    }
    auto begin = contexts_.begin();
    for (const std::span<uint32_t> run : small_) {
      const auto end = begin + static_cast<ptrdiff_t>(run.size());
      std::sort(begin, end);
      std::transform(begin, end, run.begin(), [](const Context& context) { return context.place; });
      begin = end;
    }
    small_.clear();
    small_places_ = 0;
  }

  const Id* text_;
  int bits_;  // of a token in a key
  std::vector<Run> large_;
  std::vector<std::span<uint32_t>> small_;  // at most kReadAtOnce places each
  size_t small_places_ = 0;                 // of all small runs
  std::vector<Record> records_, spare_;
  std::vector<Context> contexts_;
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
  std::vector<typename PlaceSorter<Id>::Record> records(first(range.end) - first(range.begin));
  std::vector<uint32_t> next;
  for (TokenId token = range.begin; token < range.end; ++token)
    next.push_back(first(token) - first(range.begin));
  PlaceSorter<Id> sorter(ids_of<Id>(text), text.separator);
  // The text is read in its order here, so that first keys cost no reads elsewhere.
  for_each_place(ids_of<Id>(text), text.size(), static_cast<Id>(text.separator),
                 [&](int64_t place, Id token) {
                   const auto index = static_cast<uint32_t>(token) - static_cast<uint32_t>(range.begin);
                   if (index < next.size())
                     records[next[index]++] = sorter.record_of(static_cast<uint32_t>(place));
                 });
  std::vector<uint32_t> places(records.size());
  size_t begin = 0;
  for (const uint32_t end : next) {
    sorter.sort(std::span(records).subspan(begin, end - begin),
                std::span(places).subspan(begin, end - begin));
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
  const int64_t part = std::min<int64_t>(kPlacesAtOnce, firsts.back() / (4 * threads) + 1);
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
