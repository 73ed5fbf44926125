// SPDX-License-Identifier: Apache-2.0
#include "kernels/packing.h"

#include <cstring>
#include <new>

#include "kernels/isa_ops.h"

namespace outrider {
namespace {

Status check_matrix(const TensorView& matrix) {
  if (matrix.shape.size() != 2 || matrix.shape[0] <= 0 || matrix.shape[1] <= 0) {
    return input_error("expected a weight matrix of two positive dimensions, found a tensor of " +
                       std::to_string(matrix.shape.size()) + " dimensions with " +
                       std::to_string(matrix.rows()) + " rows of " + std::to_string(matrix.cols()));
  }
  const int64_t block = block_elements(matrix.dtype);
  if (matrix.cols() % block != 0) {
    return input_error("expected rows of a multiple of " + std::to_string(block) + " elements for type " +
                       std::string(dtype_name(matrix.dtype)) + ", found " + std::to_string(matrix.cols()) +
                       "; convert the matrix to another type");
  }
  return {};
}

Result<PackedMatrix> allocate(const TensorView& matrix, int64_t bytes) {
  try {
    return PackedMatrix{matrix.dtype, matrix.rows(), matrix.cols(), Buffer(static_cast<size_t>(bytes))};
  } catch (const std::bad_alloc&) {
    return resource_error("out of memory: packing a weight matrix needs " + std::to_string(bytes) +
                          " bytes; use a smaller model or a smaller weight type");
  }
}

// kUnit: bytes. padded_row: bytes of a row once padded, a multiple of kUnit.
template <int64_t kUnit>
void interleave(const TensorView& matrix, int64_t padded_row, std::byte* out) {
  const int64_t n = matrix.rows();
  const int64_t row = row_bytes(matrix.dtype, matrix.cols());
  for (int64_t feature = 0; feature < n; ++feature) {
    const std::byte* from = matrix.data + feature * row;
    const int64_t strip = feature / kStripFeatures;
    std::byte* to = out + strip * kStripFeatures * padded_row + feature % kStripFeatures * kUnit;
    for (int64_t begin = 0; begin < row; begin += kUnit, to += kStripFeatures * kUnit) {
      const int64_t left = row - begin;
      std::memcpy(to, from + begin, static_cast<size_t>(left < kUnit ? left : kUnit));
    }
  }
}

template <int64_t kUnit>
Result<PackedMatrix> pack_interleaved(const TensorView& matrix, int64_t padded_row) {
  const int64_t strips = (matrix.rows() + kStripFeatures - 1) / kStripFeatures;
  OUTRIDER_TRY(PackedMatrix packed, allocate(matrix, strips * kStripFeatures * padded_row));
  interleave<kUnit>(matrix, padded_row, packed.data.data());
  return packed;
}

}  // namespace

Result<PackedMatrix> pack_rows(const TensorView& matrix) {
  OUTRIDER_RETURN_IF_ERROR(check_matrix(matrix));
  OUTRIDER_TRY(PackedMatrix packed, allocate(matrix, matrix.bytes()));
  std::memcpy(packed.data.data(), matrix.data, packed.data.size());
  return packed;
}

Result<PackedMatrix> pack_strips(const TensorView& matrix) {
  OUTRIDER_RETURN_IF_ERROR(check_matrix(matrix));
  const int64_t row = row_bytes(matrix.dtype, matrix.cols());
  switch (matrix.dtype) {
    case DType::kF32:
      return pack_interleaved<4>(matrix, row);
    case DType::kF16:
    case DType::kBF16:
      return pack_interleaved<2>(matrix, row);
    default:
      return pack_interleaved<1>(matrix, row);
  }
}

Result<PackedMatrix> pack_tiles(const TensorView& matrix) {
  if (matrix.dtype != DType::kBF16) return pack_strips(matrix);
  OUTRIDER_RETURN_IF_ERROR(check_matrix(matrix));
  const int64_t padded = (matrix.cols() + kTileDepth - 1) / kTileDepth * kTileDepth;
  return pack_interleaved<4>(matrix, row_bytes(matrix.dtype, padded));
}

}  // namespace outrider
