// SPDX-License-Identifier: Apache-2.0
// Products and look-ups that shards divide, and what ranks exchange.
#include <numeric>
#include <utility>

#include "models/backend/device/device_ops.h"

namespace outrider {
namespace {

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

int64_t size_of(const Range& share) { return share.end - share.begin; }

// Pieces of columns, which all shares have some of.
int64_t piece_of(std::span<const Range> shares) {
  return std::accumulate(shares.begin(), shares.end(), int64_t{0},
                         [](int64_t piece, const Range& share) { return std::gcd(piece, size_of(share)); });
}

// The piece of [rows, its share], one share after another, that each piece of whole rows is.
std::vector<int> pieces_of_rows(std::span<const Range> shares, int64_t rows, int64_t piece) {
  std::vector<int> pieces;
  for (int64_t row = 0; row < rows; ++row) {
    for (const Range& share : shares) {
      const int64_t first = (rows * share.begin + row * size_of(share)) / piece;
      for (int64_t i = 0; i < size_of(share) / piece; ++i) pieces.push_back(static_cast<int>(first + i));
    }
  }
  return pieces;
}

}  // namespace

// Sends the columns of this shard, and receives the others' into parts, which has [rows, its share] of one
// shard after another.
void DeviceOps::exchange_shares(FloatAddress part, const ShardExchange::Columns& columns, FloatAddress parts,
                                int64_t rows) {
  const ModelPart& of = ranks_->part();
  const int own = of.shard.index;
  const auto share_of = [&](int shard) { return columns.shares[static_cast<size_t>(shard)]; };
  std::vector<DeviceTransfer> transfers;
  for (int other = 0; other < of.shard.count; ++other) {
    const int rank = of.rank_of(of.stage, other);
    const int64_t sent = rows * size_of(share_of(own)), received = rows * size_of(share_of(other));
    if (other == own) continue;
    if (sent > 0 && columns.reach(other)) transfers.push_back({part.address(), sent * kFloatBytes, rank});
    if (received > 0 && columns.reach(own)) {
      transfers.push_back({(parts + rows * share_of(other).begin).address(), received * kFloatBytes, rank,
                           /*is_receive=*/true});
    }
  }
  launcher_.exchange(ranks_->links(), std::move(transfers));
}

// The parts of one row are its columns.
void DeviceOps::gather(FloatAddress part, const ShardExchange::Columns& columns, FloatAddress whole,
                       int64_t rows) {
  const std::span<const Range> shares = columns.shares;
  const int own = ranks_->part().shard.index;
  if (!columns.reach(own)) return exchange_shares(part, columns, {}, rows);
  const int64_t numbers = rows * shares.back().end;
  const FloatAddress parts = rows == 1 ? whole : numbers_in(gathered_, numbers);
  const Range& share = shares[static_cast<size_t>(own)];
  launcher_.copy(part.address(), (parts + rows * share.begin).address(), rows * size_of(share) * kFloatBytes);
  exchange_shares(part, columns, parts, rows);
  if (rows == 1) return;
  const int64_t piece = piece_of(shares);
  const std::vector<int> pieces = pieces_of_rows(shares, rows, piece);
  copy_listed({parts, piece, pieces, whole, piece, piece}, rows_of_list(fixed_list(gathered_pieces_, pieces)),
              numbers);
}

// Each shard looks up a row for every token, and the one of the shard that has the token's is taken.
void DeviceOps::embed(const PackedMatrix& table, const DividedTable& divided, std::span<const TokenId> tokens,
                      float factor, FloatAddress y) {
  const Shard& shard = divided.shard;
  if (shard.is_whole()) return look_up(table, tokens, factor, y);
  const int64_t numbers = std::ssize(tokens) * table.k;
  std::vector<Range> shares;
  for (int i = 0; i < shard.count; ++i) shares.push_back({i * numbers, (i + 1) * numbers});
  const FloatAddress all = numbers_in(gathered_, shard.count * numbers), own = all + shard.index * numbers;
  if (table.n > 0) look_up(table, divided.own_rows(tokens), factor, own);
  gather(own, {shares}, all, 1);
  const std::vector<int32_t> places = divided.places(tokens, std::ssize(tokens));
  copy_listed({all, table.k, places, y, table.k, table.k},
              records() ? recorded_->embedded : rows_of_list(listed_rows_.view(places)),
              shard.count * numbers);
}

void DeviceOps::send_states(FloatAddress states, int64_t count) {
  const ModelPart& of = ranks_->part();
  if (count > 0)
    launcher_.exchange(ranks_->links(),
                       {{states.address(), count * kFloatBytes, of.rank_of(of.stage + 1, of.shard.index)}});
}

void DeviceOps::receive_states(FloatAddress states, int64_t count) {
  const ModelPart& of = ranks_->part();
  if (count > 0)
    launcher_.exchange(ranks_->links(),
                       {{states.address(), count * kFloatBytes, of.rank_of(of.stage - 1, of.shard.index),
                         /*is_receive=*/true}});
}

void DeviceOps::project(const Projection& projection, FloatAddress x, FloatAddress y, int64_t rows) {
  if (rows == 0) return;
  const ProductCut& cut = projection.cut;
  if (!cut.inputs.empty()) {
    const FloatAddress whole = numbers_in(cut_inputs_, rows * projection.k);
    gather(x, {cut.inputs}, whole, rows);
    x = whole;
  }
  if (cut.outputs.empty()) return project_share(projection, x, y, rows);
  const FloatAddress own = numbers_in(cut_outputs_, rows * projection.n);
  project_share(projection, x, own, rows);
  gather(own, {cut.outputs, cut.only_first}, y, rows);
}

}  // namespace outrider
