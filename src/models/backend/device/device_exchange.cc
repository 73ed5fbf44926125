// SPDX-License-Identifier: Apache-2.0
// Products that shards divide, and what ranks exchange: numbers come down from the device, go through the
// memory of this machine as ShardExchange has them, and go up again.
#include <algorithm>

#include "models/backend/device/device_ops.h"

namespace outrider {

// Valid until the next call.
std::span<float> DeviceOps::downloaded(FloatAddress from, int64_t count) {
  OUTRIDER_CHECK(!records() && exchange_ != nullptr);
  own_.resize(static_cast<size_t>(count));
  device().download(from.address(), std::as_writable_bytes(std::span(own_)));
  return own_;
}

void DeviceOps::gather(FloatAddress part, const ShardExchange::Columns& columns, FloatAddress whole,
                       int64_t rows) {
  const int shard = exchange_->part().shard.index;
  const Range own = columns.shares[static_cast<size_t>(shard)];
  const std::span<float> numbers = downloaded(part, rows * (own.end - own.begin));
  exchanged_.resize(static_cast<size_t>(rows * columns.shares.back().end));
  exchange_->gather(numbers.data(), columns, exchanged_.data(), rows);
  if (columns.only_first && shard != 0) return;
  device().upload(std::as_bytes(std::span(exchanged_)), whole.address());
}

void DeviceOps::share_rows_of_table(std::span<const int32_t> numbers, int64_t table_rows, FloatAddress rows,
                                    int64_t dim) {
  if (exchange_->part().shard.is_whole()) return;
  const std::span<float> shared = downloaded(rows, std::ssize(numbers) * dim);
  exchange_->share_rows_of_table(numbers, table_rows, shared.data(), dim);
  device().upload(std::as_bytes(shared), rows.address());
}

void DeviceOps::send_states(FloatAddress states, int64_t count) {
  exchange_->send_states(downloaded(states, count));
}

void DeviceOps::receive_states(FloatAddress states, int64_t count) {
  exchanged_.resize(static_cast<size_t>(count));
  exchange_->receive_states(exchanged_);
  device().upload(std::as_bytes(std::span(exchanged_)), states.address());
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
