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
      return DType::kQ8_0;
    case StateType::kNone:
      break;
  }
  OUTRIDER_CHECK(false);
  return DType::kF32;
}

// Numbers that are stored for a row: rows of 8 bits are filled up with zeros to whole blocks.
int64_t stored_size(StateType type, int64_t size) {
  constexpr int64_t kBlock = 32;
  return type == StateType::kQ8 ? (size + kBlock - 1) / kBlock * kBlock : size;
}

}  // namespace

int64_t state_row_bytes(StateType type, int64_t size) {
  return row_bytes(stored_type(type), stored_size(type, size));
}

void append_state_rows(StateType type, std::span<const float> rows, int64_t size, std::string& bytes) {
  const int64_t row_size = state_row_bytes(type, size);
  std::vector<float> stored(static_cast<size_t>(stored_size(type, size)));
  for (auto row = rows.begin(); row != rows.end(); row += size) {
    std::copy_n(row, size, stored.begin());
    const size_t begin = bytes.size();
    bytes.resize(begin + static_cast<size_t>(row_size));
    quantize_row(stored_type(type), stored.data(), reinterpret_cast<std::byte*>(bytes.data() + begin),
                 std::ssize(stored));
  }
}

Status read_state_rows(StateType type, std::string_view bytes, int64_t size, std::vector<float>& rows) {
  const int64_t row_size = state_row_bytes(type, size);
  if (std::ssize(bytes) % row_size != 0) {
    return input_error("expected states of " + std::to_string(row_size) + " bytes for each token, found " +
                       std::to_string(bytes.size()) + " bytes");
  }
  std::vector<float> stored(static_cast<size_t>(stored_size(type, size)));
  for (int64_t begin = 0; begin < std::ssize(bytes); begin += row_size) {
    dequantize_row(stored_type(type), reinterpret_cast<const std::byte*>(bytes.data() + begin), stored.data(),
                   std::ssize(stored));
    if (!std::ranges::all_of(stored, [](float number) { return std::isfinite(number); }))
      return input_error("expected states of finite numbers, found others");
    rows.insert(rows.end(), stored.begin(), stored.begin() + size);
  }
  return {};
}

}  // namespace outrider
