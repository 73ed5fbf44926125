// SPDX-License-Identifier: Apache-2.0
// Random matrices of every type and the list of tables, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"

namespace outrider {

inline constexpr DType kAllDTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0, DType::kQ4_0,
                                       DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kI8};

// The tables this machine can run; says which ones are left out and why.
inline std::vector<const KernelTable*> tables_to_test() {
  std::vector<const KernelTable*> tables;
  for (const char* name : {"reference", "avx2", "avx512", "avx512_bf16", "amx"}) {
    auto table = select_kernels(name);
    if (table.ok()) {
      tables.push_back(*table);
    } else {
      std::cout << "not tested: " << table.error().message << "\n";
    }
  }
  return tables;
}

using Floats = std::vector<float>;

inline Floats random_floats(size_t count, uint64_t seed, float scale = 1) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal(0, scale);
  Floats numbers(count);
  for (float& number : numbers) number = normal(engine);
  return numbers;
}

// A stored matrix with the memory it lives in.
struct StoredMatrix {
  DType dtype = DType::kF32;
  int64_t n = 0;
  int64_t k = 0;
  std::vector<std::byte> bytes;

  TensorView view() const { return {dtype, {n, k}, bytes.data()}; }
  Floats values() const {
    Floats out(static_cast<size_t>(n * k));
    for (int64_t j = 0; j < n; ++j) {
      dequantize_row(dtype, bytes.data() + j * row_bytes(dtype, k), out.data() + j * k, k);
    }
    return out;
  }
};

// Blocks of K-quants are random bytes with small finite scales, so that every scale and code occurs.
inline StoredMatrix random_matrix(DType dtype, int64_t n, int64_t k, uint64_t seed) {
  StoredMatrix matrix{dtype, n, k, std::vector<std::byte>(static_cast<size_t>(n * row_bytes(dtype, k)))};
  const bool k_quant = dtype == DType::kQ4_K || dtype == DType::kQ5_K || dtype == DType::kQ6_K;
  if (!k_quant) {
    const Floats numbers = random_floats(static_cast<size_t>(n * k), seed, 0.05F);
    for (int64_t j = 0; j < n; ++j) {
      quantize_row(dtype, numbers.data() + j * k, matrix.bytes.data() + j * row_bytes(dtype, k), k);
    }
    return matrix;
  }
  std::mt19937_64 engine(seed);
  for (std::byte& byte : matrix.bytes) byte = static_cast<std::byte>(engine() & 0xFF);
  const auto size = static_cast<size_t>(block_bytes(dtype));
  for (size_t block = 0; block < matrix.bytes.size(); block += size) {
    const auto put_half = [&](size_t offset, float scale) {
      const uint16_t bits = f32_to_f16(scale * static_cast<float>(1 + engine() % 16));
      matrix.bytes[block + offset] = static_cast<std::byte>(bits & 0xFF);
      matrix.bytes[block + offset + 1] = static_cast<std::byte>(bits >> 8);
    };
    put_half(dtype == DType::kQ6_K ? 208 : 0, 1e-5F);
    if (dtype != DType::kQ6_K) put_half(2, 1e-5F);
  }
  return matrix;
}

// Runs the shares of `workers` workers one after the other.
template <typename Kernel>
void run_shares(int workers, Kernel kernel) {
  for (int index = 0; index < workers; ++index) kernel(Worker{index, workers});
}

// x times the matrix, inputs packed first.
inline Floats product(const KernelTable& table, const PackedMatrix& weights, const Floats& x, int64_t rows,
                      int workers) {
  Floats y(static_cast<size_t>(rows * weights.n), std::nanf(""));
  Buffer packed_x(static_cast<size_t>(input_bytes(weights.inputs, rows, weights.k)));
  const LinearArgs args{&weights, x.data(), packed_x.data(), y.data(), rows};
  if (weights.inputs != InputLayout::kF32)
    run_shares(workers, [&](Worker worker) { table.pack_inputs(args, worker); });
  run_shares(workers, [&](Worker worker) { table.linear(args, worker); });
  return y;
}

}  // namespace outrider
