// SPDX-License-Identifier: Apache-2.0
#include "kv/kv_storage.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>

#include "kernels/quants.h"

namespace outrider {

size_t storage_bytes(const KvShape& shape) {
  auto bytes = static_cast<size_t>(shape.bytes_before(shape.layer_count));
  for (const int64_t factor : {static_cast<int64_t>(shape.page_size), shape.page_count}) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(factor), &bytes)) throw std::bad_alloc();
  }
  return bytes;
}

// In Q8_0 the scale at the beginning of each block is NaN.
std::vector<std::byte> row_of_nan(const KvShape& shape) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::byte> unit(static_cast<size_t>(block_bytes(shape.type)));
  if (shape.type == DType::kE4M3) {
    unit.front() = static_cast<std::byte>(f32_to_e4m3(nan));
  } else if (shape.type == DType::kF32) {
    std::memcpy(unit.data(), &nan, sizeof(nan));
  } else {
    const uint16_t bits = shape.type == DType::kBF16 ? f32_to_bf16(nan) : f32_to_f16(nan);
    std::memcpy(unit.data(), &bits, sizeof(bits));
  }
  std::vector<std::byte> row;
  int64_t longest = 0;
  for (int64_t layer = 0; layer < shape.layer_count; ++layer)
    longest = std::max(longest, shape.row_bytes(layer));
  while (std::ssize(row) < longest) row.insert(row.end(), unit.begin(), unit.end());
  return row;
}

int64_t begin_of(const KvShape& shape, int64_t layer, KvPart part) {
  const int64_t slots = shape.page_count * shape.page_size;
  const bool comes_second = part == KvPart::kValues && !shape.values_are_keys;
  return slots * (shape.bytes_before(layer) + (comes_second ? shape.row_bytes(layer) : 0));
}

void read_heads(DType type, const KvHeads& heads, const std::byte* row, float* out, int64_t stride) {
  constexpr int64_t kUnit = 32;  // heads are stored in whole units of it
  const int64_t whole = heads.dim / kUnit * kUnit;
  for (int64_t h = 0; h < heads.count; ++h, out += stride, row += cached_head_bytes(type, heads.dim)) {
    dequantize_row(type, row, out, whole);
    if (whole == heads.dim) continue;
    std::array<float, kUnit> rest;
    dequantize_row(type, row + cached_head_bytes(type, whole), rest.data(), kUnit);
    std::copy_n(rest.begin(), heads.dim - whole, out + whole);
  }
}

int64_t KvShape::bytes_before(int64_t layer) const {
  const int64_t parts = values_are_keys ? 1 : 2;
  if (layers.empty()) return parts * layer * row_bytes();
  int64_t bytes = 0;
  for (int64_t i = 0; i < layer; ++i) bytes += parts * row_bytes(i);
  return bytes;
}

HostPages::HostPages(const KvShape& shape)
    : shape_(shape), storage_(storage_bytes(shape)), states_(shape.states) {}

void HostPages::move(const KvMove& move) {
  for (int64_t layer = 0; layer < shape_.layer_count; ++layer) {
    const int64_t bytes = shape_.row_bytes(layer);
    for (std::byte* rows : {keys(layer), values(layer)}) {  // the same rows twice where values are keys
      std::memcpy(rows + move.to * bytes, rows + move.from * bytes, static_cast<size_t>(move.count * bytes));
    }
  }
}

void HostPages::poison(int64_t first_slot, int64_t count) {
  if (poisoned_row_.empty()) poisoned_row_ = row_of_nan(shape_);
  for (int64_t layer = 0; layer < shape_.layer_count; ++layer) {
    const int64_t bytes = shape_.row_bytes(layer);
    for (std::byte* rows : {keys(layer), values(layer)}) {
      for (int64_t slot = first_slot; slot < first_slot + count; ++slot)
        std::copy_n(poisoned_row_.begin(), bytes, rows + slot * bytes);
    }
  }
}

void HostPages::clear(int64_t first_slot, int64_t count) {
  for (int64_t layer = 0; layer < shape_.layer_count; ++layer) {
    const int64_t bytes = shape_.row_bytes(layer);
    for (std::byte* rows : {keys(layer), values(layer)})
      std::memset(rows + first_slot * bytes, 0, static_cast<size_t>(count * bytes));
  }
}

void HostPages::read(const KvRow& row, float* out, int64_t stride) const {
  const std::byte* stored =
      storage_.data() + begin_of(shape_, row.layer, row.part) + row.slot * shape_.row_bytes(row.layer);
  read_heads(shape_.type, shape_.heads(row.layer), stored, out, stride);
}

void HostPages::save(int64_t first_slot, int64_t count, std::byte* to) const {
  for_each_part(shape_, [&](int64_t begin, int64_t row_bytes) {
    to = std::copy_n(storage_.data() + begin + first_slot * row_bytes, count * row_bytes, to);
  });
}

void HostPages::load(int64_t first_slot, int64_t count, const std::byte* from) {
  for_each_part(shape_, [&](int64_t begin, int64_t row_bytes) {
    std::copy_n(from, count * row_bytes, storage_.data() + begin + first_slot * row_bytes);
    from += count * row_bytes;
  });
}

}  // namespace outrider
