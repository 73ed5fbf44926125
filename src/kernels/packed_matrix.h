// SPDX-License-Identifier: Apache-2.0
// Matrices of weights in the layouts that are private to the tables of kernels.
#pragma once

#include <cstdint>
#include <span>

#include "outrider/result.h"
#include "tensor/buffer.h"
#include "tensor/tensor_view.h"

namespace outrider {

// Layouts of the weights of a product; isa_ops.h has the sizes.
enum class WeightLayout : uint8_t {
  kRows,         // as stored
  kPanels,       // F32, F16, BF16, F8: panels of features, input by input
  kPairs,        // BF16: as kPanels, two inputs of each feature side by side
  kDotNibbles,   // 4-bit codes, four inputs of each feature side by side
  kDotBytes,     // as kDotNibbles, 8-bit codes
  kChannels,     // I8: as kDotBytes, one scale per feature
  kTiles,        // BF16: AMX tiles
  kTileNibbles,  // 4-bit codes, decoded to such tiles at use
  kTileBytes,    // as kTileNibbles, 8-bit codes
};

// Layouts of the inputs of a product.
enum class InputLayout : uint8_t {
  kF32,         // f32, not packed
  kInt8Groups,  // 8-bit codes, one scale per 32 inputs
  kInt8Rows,    // 8-bit codes, one scale per row
  kBF16Pairs,   // bf16, two inputs of each row side by side
  kBF16Tiles,   // bf16, AMX tiles
  kF32Tiles,    // f32, each input of several rows side by side; few rows are not packed
};

// A matrix [n, k] in a private layout.
struct PackedMatrix {
  WeightLayout layout = WeightLayout::kRows;
  InputLayout inputs = InputLayout::kF32;  // the layout of inputs that the product reads
  DType dtype = DType::kF32;
  int64_t n = 0;  // output features
  int64_t k = 0;  // input features
  int64_t panel_features = 1;
  int64_t panel_bytes = 0;
  Buffer data;

  int64_t panel_count() const { return (n + panel_features - 1) / panel_features; }
  int64_t bytes() const { return panel_count() * panel_bytes; }
};

// A matrix to be packed: the rows of all parts in order. A part of another type is converted to `dtype`,
// which must then be a type that quantize_row() writes.
struct MatrixSource {
  std::span<const TensorView> parts;
  DType dtype = DType::kF32;
};

// The layout of a matrix that is only read by rows and kept as stored; the pack() of any table fills it.
Result<PackedMatrix> row_layout(const MatrixSource& source);

// Gives a matrix that has its layout the memory of its data, zero until pack() fills it. Error: out of
// memory.
Status allocate(PackedMatrix& packed);

// Writes row `row` of a packed matrix as f32 [k]. The numbers equal dequantize_row()'s, but packing rounds
// some scales. For vectors or tiles it rounds scales that are products (K-quants and most IQ types) to half
// precision, and the scales of 4-bit codes in tiles to eight significant bits.
void unpack_row(const PackedMatrix& packed, int64_t row, float* out);

}  // namespace outrider
