// SPDX-License-Identifier: Apache-2.0
#include "remote/protocol/state_rows.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/quants.h"

namespace outrider {
namespace {

DType stored_type(StateType type) {
  switch (type) {
    case StateType::kBF16:
      return DType::kBF16;
    case StateType::kF16:
      return DType::kF16;
    case StateType::kQ8:
      return DType::kI8;
    case StateType::kNone:
      break;
  }
  OUTRIDER_CHECK(false);
  return DType::kF32;
}

}  // namespace

int64_t state_row_bytes(StateType type, int64_t size) { return row_bytes(stored_type(type), size); }

void append_state_rows(StateType type, std::span<const float> rows, int64_t size, std::string& bytes) {
  const int64_t row_size = state_row_bytes(type, size);
  const int64_t count = std::ssize(rows) / size;
  const auto begin = static_cast<int64_t>(bytes.size());
  bytes.resize(static_cast<size_t>(begin + count * row_size));
  for (int64_t i = 0; i < count; ++i) {
    quantize_row(stored_type(type), rows.data() + i * size,
                 reinterpret_cast<std::byte*>(bytes.data() + begin + i * row_size), size);
  }
}

Status read_state_rows(StateType type, std::string_view bytes, int64_t size, std::vector<float>& rows) {
  const int64_t row_size = state_row_bytes(type, size);
  if (std::ssize(bytes) % row_size != 0) {
    return input_error("expected states of " + std::to_string(row_size) + " bytes for each token, found " +
                       std::to_string(bytes.size()) + " bytes");
  }
  const size_t begin = rows.size();
  rows.resize(begin + static_cast<size_t>(std::ssize(bytes) / row_size * size));
  for (int64_t i = 0; i < std::ssize(bytes) / row_size; ++i) {
    dequantize_row(stored_type(type), reinterpret_cast<const std::byte*>(bytes.data() + i * row_size),
                   rows.data() + begin + i * size, size);
  }
  const bool is_finite = std::all_of(rows.begin() + static_cast<std::ptrdiff_t>(begin), rows.end(),
                                     [](float x) { return std::isfinite(x); });
  if (!is_finite) return input_error("expected states of finite numbers, found others");
  return {};
}

}  // namespace outrider
