// SPDX-License-Identifier: Apache-2.0
#include "models/sharding/shard_exchange.h"

#include <algorithm>

namespace outrider {
namespace {

// Copies [rows, size] into columns of rows of `width` numbers.
void put_columns(const float* part, float* whole, int64_t rows, int64_t size, int64_t width) {
  for (int64_t r = 0; r < rows; ++r) std::copy_n(part + r * size, size, whole + r * width);
}

}  // namespace

void ShardExchange::gather(const float* part, const Columns& columns, float* whole, int64_t rows) {
  const Shard& shard = part_.shard;
  const auto size_of = [&](int index) {
    const Range& share = columns.shares[static_cast<size_t>(index)];
    return share.end - share.begin;
  };
  const int64_t own = size_of(shard.index);
  for (int other = 0; other < shard.count; ++other) {
    if (other == shard.index || own == 0 || (columns.only_first && other != 0)) continue;
    part_.ranks->send(std::as_bytes(std::span(part, static_cast<size_t>(rows * own))), peer(other));
  }
  if (columns.only_first && shard.index != 0) return;
  const int64_t width = columns.shares.back().end;
  for (int other = 0; other < shard.count; ++other) {
    const int64_t size = size_of(other);
    float* to = whole + columns.shares[static_cast<size_t>(other)].begin;
    if (other == shard.index) {
      put_columns(part, to, rows, size, width);
    } else if (size > 0) {
      parts_.resize(static_cast<size_t>(rows * size));
      part_.ranks->receive(std::as_writable_bytes(std::span(parts_)), peer(other));
      put_columns(parts_.data(), to, rows, size, width);
    }
  }
}

void ShardExchange::share_rows(std::span<const int> owners, float* rows, int64_t dim) {
  const Shard& shard = part_.shard;
  const auto collect = [&](int owner, auto&& visit) {
    for (size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] == owner) visit(rows + static_cast<int64_t>(i) * dim);
    }
  };
  parts_.clear();
  collect(shard.index, [&](const float* row) { parts_.insert(parts_.end(), row, row + dim); });
  for (int other = 0; other < shard.count; ++other) {
    if (other != shard.index && !parts_.empty())
      part_.ranks->send(std::as_bytes(std::span(parts_)), peer(other));
  }
  for (int other = 0; other < shard.count; ++other) {
    if (other == shard.index) continue;
    parts_.resize(static_cast<size_t>(std::ranges::count(owners, other) * dim));
    if (parts_.empty()) continue;
    part_.ranks->receive(std::as_writable_bytes(std::span(parts_)), peer(other));
    const float* next = parts_.data();
    collect(other, [&](float* row) {
      std::copy_n(next, dim, row);
      next += dim;
    });
  }
}

void ShardExchange::share_rows_of_table(std::span<const int32_t> numbers, int64_t table_rows, float* rows,
                                        int64_t dim) {
  if (part_.shard.is_whole()) return;
  const std::vector<Range> cut = part_.shard.cut(table_rows);
  std::vector<int> owners;
  for (const int32_t number : numbers) {
    const auto owner = std::ranges::find_if(cut, [&](const Range& range) { return number < range.end; });
    owners.push_back(static_cast<int>(owner - cut.begin()));
  }
  share_rows(owners, rows, dim);
}

void ShardExchange::send_states(std::span<const float> states) {
  if (!states.empty())
    part_.ranks->send(std::as_bytes(states), part_.rank_of(part_.stage + 1, part_.shard.index));
}

void ShardExchange::receive_states(std::span<float> states) {
  if (!states.empty())
    part_.ranks->receive(std::as_writable_bytes(states), part_.rank_of(part_.stage - 1, part_.shard.index));
}

}  // namespace outrider
