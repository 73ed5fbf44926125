// SPDX-License-Identifier: Apache-2.0
#include "models/sharding/shard.h"

#include <algorithm>

namespace outrider {
namespace {

// Features of the widest panel (kernels/packing.cc): features of one panel may share numbers.
constexpr int64_t kShardGrain = 32;

// The least number of copies with which every shard gets a head, as far as query heads can be divided.
int64_t copies_for(const LayerSizes& sizes, int shards) {
  const int64_t group = sizes.head_count / sizes.kv_head_count;
  int64_t copies = 1;
  while (copies < group && (sizes.kv_head_count * copies < shards || group % copies != 0)) ++copies;
  return copies;
}

}  // namespace

Range Shard::of(int64_t total) const { return share_of({index, count}, total, kShardGrain); }

std::vector<Range> Shard::cut(int64_t total) const {
  std::vector<Range> ranges;
  for (int i = 0; i < count; ++i) ranges.push_back(Shard{i, count}.of(total));
  return ranges;
}

std::vector<int32_t> DividedTable::own_rows(std::span<const int32_t> numbers) const {
  const Range own = shard.of(rows);
  std::vector<int32_t> found;
  for (const int32_t number : numbers) {
    const bool is_own = number >= own.begin && number < own.end;
    found.push_back(is_own ? number - static_cast<int32_t>(own.begin) : 0);
  }
  return found;
}

std::vector<int32_t> DividedTable::places(std::span<const int32_t> numbers, int64_t count) const {
  const std::vector<Range> cut = shard.cut(rows);
  std::vector<int32_t> places;
  for (const int32_t number : numbers) {
    const auto owner = std::ranges::find_if(cut, [&](const Range& range) { return number < range.end; });
    places.push_back(static_cast<int32_t>((owner - cut.begin()) * count + std::ssize(places)));
  }
  return places;
}

HeadShare::HeadShare(const LayerSizes& sizes, Shard shard)
    : copies(copies_for(sizes, shard.count)), head_dim(sizes.head_dim) {
  units = share_of({shard.index, shard.count}, sizes.kv_head_count * copies);
  queries = sizes.head_count / sizes.kv_head_count / copies;
}

std::vector<Range> HeadShare::kv_rows() const {
  std::vector<Range> rows;
  for (int64_t unit = units.begin; unit < units.end; ++unit) {
    const int64_t head = unit / copies;
    rows.push_back({head * head_dim, (head + 1) * head_dim});
  }
  return rows;
}

std::vector<Range> cut_heads(const LayerSizes& sizes, int shards) {
  std::vector<Range> ranges;
  for (int i = 0; i < shards; ++i) ranges.push_back(HeadShare(sizes, {i, shards}).query_rows());
  return ranges;
}

ModelPart part_of(Communicator& ranks, int shards, int stages) {
  return {.shard = {ranks.rank() % shards, shards},
          .stage = ranks.rank() / shards,
          .stage_count = stages,
          .ranks = &ranks};
}

}  // namespace outrider
