// SPDX-License-Identifier: Apache-2.0
#include "formats/derived_rows.h"

#include <cstring>

namespace outrider {

void SteppedRows::read_row(int64_t row, std::byte* out) const {
  const int64_t at = first_ + row * step_;
  if (matrix_.source != nullptr) return matrix_.source->read_row(matrix_.first_row + at, out);
  const int64_t size = row_bytes(matrix_.dtype, matrix_.cols());
  std::memcpy(out, matrix_.data + at * size, static_cast<size_t>(size));
}

std::span<const std::byte> SteppedRows::stored(int64_t first_row, int64_t rows) const {
  const int64_t begin = first_ + first_row * step_;
  const int64_t count = rows == 0 ? 0 : (rows - 1) * step_ + 1;
  if (matrix_.source != nullptr) return matrix_.source->stored(matrix_.first_row + begin, count);
  const int64_t size = row_bytes(matrix_.dtype, matrix_.cols());
  return {matrix_.data + begin * size, static_cast<size_t>(count * size)};
}

void TransposedRows::read_row(int64_t row, std::byte* out) const {
  const auto size = static_cast<size_t>(row_bytes(matrix_.dtype, 1));
  const auto line = static_cast<size_t>(row_bytes(matrix_.dtype, matrix_.cols()));
  const std::byte* from = matrix_.data + static_cast<size_t>(row) * size;
  for (int64_t i = 0; i < matrix_.rows(); ++i, from += line, out += size) std::memcpy(out, from, size);
}

void ChosenRows::read_row(int64_t row, std::byte* out) const {
  std::vector<std::byte> made;
  std::memcpy(out, matrix_.row(rows_[static_cast<size_t>(row)], made),
              static_cast<size_t>(row_bytes(matrix_.dtype, matrix_.cols())));
}

std::span<const std::byte> ChosenRows::stored(int64_t first_row, int64_t rows) const {
  const int64_t begin = rows_[static_cast<size_t>(first_row)];
  const int64_t end = rows_[static_cast<size_t>(first_row + rows - 1)] + 1;
  const TensorView part = matrix_.rows_from(begin, end - begin);
  if (part.data == nullptr) return part.source->stored(part.first_row, end - begin);
  return {part.data, static_cast<size_t>(part.bytes())};
}

}  // namespace outrider
