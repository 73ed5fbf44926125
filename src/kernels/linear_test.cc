// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kernel_test_data.h"

namespace outrider {
namespace {

Floats product(const KernelTable& table, const PackedMatrix& weights, const Floats& x, int64_t rows,
               int workers) {
  Floats y(static_cast<size_t>(rows * weights.n), std::nanf(""));
  run_shares(workers, [&](Worker worker) { table.linear({&weights, x.data(), y.data(), rows}, worker); });
  return y;
}

bool rounds_activations(const KernelTable& table, DType dtype) {
  return table.name == "amx" && dtype != DType::kF32 && dtype != DType::kF16;
}

// Error of each output, relative to the sum of the magnitudes added.
double largest_error(const Floats& y, const Floats& x, const Floats& weights, int64_t rows, int64_t n,
                     int64_t k) {
  double largest = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double term = static_cast<double>(x[r * k + i]) * weights[j * k + i];
        sum += term;
        magnitude += std::abs(term);
      }
      const double error = std::abs(y[r * n + j] - sum) / magnitude;
      if (!(error <= largest)) largest = error;
    }
  }
  return largest;
}

TEST(Linear, AgreesWithDoublePrecision) {
  for (const KernelTable* table : tables_to_test()) {
    for (DType dtype : kAllDTypes) {
      const int64_t block = block_elements(dtype);
      for (int64_t k :
           {block, 3 * block, block == 1 ? int64_t{33} : 5 * block, int64_t{1280}, block + 1024}) {
        for (int64_t n : {1, 15, 16, 50}) {
          const StoredMatrix matrix = random_matrix(dtype, n, k, 11);
          const Floats weights = matrix.values();
          auto packed = table->pack(matrix.view());
          ASSERT_TRUE(packed.ok()) << packed.error().message;
          for (int64_t rows : {1, 5, 19}) {
            const Floats x = random_floats(static_cast<size_t>(rows * k), 12);
            const Floats y = product(*table, *packed, x, rows, 2);
            const double bound = rounds_activations(*table, dtype) ? 4e-3 : 1e-6;
            EXPECT_LT(largest_error(y, x, weights, rows, n, k), bound)
                << table->name << " " << dtype_name(dtype) << " n " << n << " k " << k << " rows " << rows;
          }
        }
      }
    }
  }
}

// A single 1 among the inputs picks one stored weight, which vectors must decode to the scalar reading's
// bits, or to its nearest bf16 where tiles hold the weights.
TEST(Linear, DecodesEveryWeightExactly) {
  constexpr int64_t kOutputs = 19;
  for (const KernelTable* table : tables_to_test()) {
    for (DType dtype : kAllDTypes) {
      const int64_t k = 512;
      const StoredMatrix matrix = random_matrix(dtype, kOutputs, k, 13);
      const Floats weights = matrix.values();
      auto packed = table->pack(matrix.view());
      ASSERT_TRUE(packed.ok());
      Floats identity(static_cast<size_t>(k * k));
      for (int64_t i = 0; i < k; ++i) identity[i * k + i] = 1;
      const Floats y = product(*table, *packed, identity, k, 1);
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = 0; j < kOutputs; ++j) {
          float expected = weights[j * k + i];
          if (rounds_activations(*table, dtype)) expected = bf16_to_f32(f32_to_bf16(expected));
          ASSERT_EQ(y[i * kOutputs + j], expected)
              << table->name << " " << dtype_name(dtype) << " " << j << "," << i;
        }
      }
    }
  }
}

// Deep rows in many chunks: the sums of the tile table pass through y between ranges of inputs.
TEST(Linear, DeepRowsKeepTheirBitsInLargeChunks) {
  constexpr int64_t kDepth = 5000, kOutputs = 20, kRows = 150;
  for (const KernelTable* table : tables_to_test()) {
    const StoredMatrix matrix = random_matrix(DType::kBF16, kOutputs, kDepth, 14);
    auto packed = table->pack(matrix.view());
    ASSERT_TRUE(packed.ok());
    const Floats x = random_floats(kRows * kDepth, 15);
    const Floats together = product(*table, *packed, x, kRows, 1);
    for (int64_t r : {0, 127, 128, 149}) {
      const Floats row(x.begin() + r * kDepth, x.begin() + (r + 1) * kDepth);
      const Floats alone = product(*table, *packed, row, 1, 1);
      for (int64_t j = 0; j < kOutputs; ++j)
        ASSERT_EQ(together[r * kOutputs + j], alone[j]) << table->name << " " << r;
    }
    EXPECT_LT(largest_error(together, x, matrix.values(), kRows, kOutputs, kDepth), 4e-3);
  }
}

}  // namespace
}  // namespace outrider
