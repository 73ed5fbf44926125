// SPDX-License-Identifier: Apache-2.0
#include "models/backend/operation_costs.h"

#include <algorithm>

namespace outrider {

OperationCost cost_of_numbers(int64_t numbers) {
  return {.bytes = numbers * static_cast<int64_t>(sizeof(float))};
}

OperationCost cost_of_product(std::span<const PackedMatrix> matrices, int64_t rows) {
  OperationCost cost;
  for (const PackedMatrix& matrix : matrices) {
    cost.inputs = matrix.inputs;
    cost.bytes += matrix.bytes() + rows * (matrix.n + matrix.k) * static_cast<int64_t>(sizeof(float));
    cost.operations += 2 * rows * matrix.n * matrix.k;
  }
  return cost;
}

OperationCost cost_of_attention(const AttentionShape& shape, const KvShape& cached,
                                std::span<const AttentionRow> rows) {
  int64_t entries = 0;
  for (const AttentionRow& row : rows) {
    const int64_t length = int64_t{row.prefix_len} + row.tail_len;
    entries += shape.window > 0 ? std::min(length, shape.window) : length;
  }
  const int64_t parts = shape.values_are_keys ? 1 : 2;
  const int64_t entry_bytes = parts * shape.kv_head_count * cached_head_bytes(cached.type, shape.head_dim);
  const int64_t mean = rows.empty() ? 0 : entries / std::ssize(rows);
  return {.bytes = mean * entry_bytes, .operations = 4 * entries * shape.head_count * shape.head_dim};
}

}  // namespace outrider
