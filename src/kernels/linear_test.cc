// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "kernels/isa_ops.h"
#include "kernels/kernel_test_data.h"
#include "kernels/packing.h"
#include "platform/cpu_features.h"

namespace outrider {
namespace {

// The inputs x as a product of that layout reads them, by the definition of the layout.
Floats seen_inputs(InputLayout layout, const Floats& x, int64_t k) {
  Floats seen = x;
  if (layout == InputLayout::kBF16Tiles || layout == InputLayout::kBF16Pairs) {
    for (float& number : seen) number = bf16_to_f32(f32_to_bf16(number));
  }
  if (layout != InputLayout::kInt8Groups && layout != InputLayout::kInt8Rows) return seen;
  const auto group = static_cast<size_t>(layout == InputLayout::kInt8Rows ? k : 32);
  for (size_t begin = 0; begin < x.size(); begin += group) {
    float largest = 0;
    for (size_t i = begin; i < begin + group; ++i) largest = std::max(largest, std::abs(x[i]));
    for (size_t i = begin; i < begin + group; ++i) {
      seen[i] = largest == 0 ? 0 : std::nearbyint(x[i] * (127 / largest)) * (largest / 127);
    }
  }
  return seen;
}

// Largest error of the stored weights, relative to the largest term of a weight. Tiles hold bf16, for nibbles
// by truncation or with rounded scales; scales that are products are rounded to half precision.
double weight_error(DType stored, const PackedMatrix& packed) {
  const bool is_rounded = stored == DType::kF8 && packed.dtype == DType::kBF16;
  const double scale_error = is_rounded ? 1.0 / 256 : has_rounded_scales(packed.dtype) ? 6e-4 : 2e-7;
  switch (packed.layout) {
    case WeightLayout::kTileNibbles:
      return 1.0 / 128;
    case WeightLayout::kTiles:
    case WeightLayout::kTileBytes:
      return 1.0 / 256 + scale_error;
    default:
      return scale_error;
  }
}

// Error of each output, relative to the sum of the magnitudes added.
double largest_error(const Floats& y, const Floats& x, const Floats& weights, int64_t rows, int64_t n,
                     int64_t k) {
  double largest = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < n; ++j) {
      const float* const inputs = x.data() + r * k;
      const float* const row = weights.data() + j * k;
      double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double term = static_cast<double>(inputs[i]) * row[i];
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
          auto packed = pack_matrix(*table, matrix.view());
          ASSERT_TRUE(packed.ok()) << packed.error().message;
          for (int64_t rows : {1, 5, 19, 40}) {
            const Floats x = random_floats(static_cast<size_t>(rows * k), 12);
            const Floats y = product(*table, *packed, x, rows, 2);
            const double error = largest_error(y, seen_inputs(packed->inputs, x, k), weights, rows, n, k);
            EXPECT_LT(error, weight_error(dtype, *packed) + 1e-6)
                << table->name << " " << dtype_name(dtype) << " n " << n << " k " << k << " rows " << rows;
          }
        }
      }
    }
  }
}

// Long sums average the roundings of single weights away unless they lean to one side.
TEST(Linear, RoundingOfWeightsIsUnbiased) {
  constexpr int64_t kInputs = 1 << 15;
  for (const KernelTable* table : tables_to_test()) {
    for (DType dtype : kAllDTypes) {
      const StoredMatrix matrix = random_matrix(dtype, 16, kInputs, 16);
      auto packed = pack_matrix(*table, matrix.view());
      ASSERT_TRUE(packed.ok());
      const Floats weights = matrix.values();
      // Inputs of the weights' own signs, so that every term is positive; powers of two are exact in every
      // layout.
      for (int64_t j = 0; j < 16; ++j) {
        Floats x(kInputs);
        for (int64_t i = 0; i < kInputs; ++i) x[i] = weights[j * kInputs + i] < 0 ? -1.0F : 1.0F;
        double expected = 0;
        for (int64_t i = 0; i < kInputs; ++i)
          expected += std::abs(static_cast<double>(weights[j * kInputs + i]));
        const double y = product(*table, *packed, x, 1, 1)[j];
        EXPECT_LT(std::abs(y / expected - 1), 1.5e-3) << table->name << " " << dtype_name(dtype);
      }
    }
  }
}

// A single 1 among the inputs picks one stored weight.
TEST(Linear, DecodesEveryWeight) {
  constexpr int64_t kOutputs = 35;
  for (const KernelTable* table : tables_to_test()) {
    for (DType dtype : kAllDTypes) {
      const int64_t k = 512;
      const StoredMatrix matrix = random_matrix(dtype, kOutputs, k, 13);
      const Floats weights = matrix.values();
      auto packed = pack_matrix(*table, matrix.view());
      ASSERT_TRUE(packed.ok());
      Floats identity(static_cast<size_t>(k * k));
      for (int64_t i = 0; i < k; ++i) identity[i * k + i] = 1;
      const Floats y = product(*table, *packed, identity, k, 1);
      const double largest = std::abs(*std::max_element(
          weights.begin(), weights.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
      // A weight with a min (a zero code is one, too) is a difference of parts at most twice the largest
      // weight here.
      const bool has_min = block_elements(dtype) > 1 &&
                           (code_type(dtype).has_min || packed->layout == WeightLayout::kDotNibbles);
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = 0; j < kOutputs; ++j) {
          const float expected = weights[j * k + i];
          const double scale = has_min ? 2 * largest : std::abs(static_cast<double>(expected));
          ASSERT_LE(std::abs(static_cast<double>(y[i * kOutputs + j]) - expected),
                    weight_error(dtype, *packed) * scale)
              << table->name << " " << dtype_name(dtype) << " " << j << "," << i;
        }
      }
    }
  }
}

// The instruction sets with products of integers that this machine has; the first one is the table kIntegers.
#if defined(__aarch64__)
constexpr std::string_view kIntegers = "neon";
std::vector<IsaOps> integer_ops() {
  std::vector<IsaOps> all = {neon_ops()};
  if (cpu_features().i8mm_refusal.empty()) all.push_back(i8mm_ops());
  return all;
}
#else
constexpr std::string_view kIntegers = "avx2";
std::vector<IsaOps> integer_ops() {
  const CpuFeatures& cpu = cpu_features();
  std::vector<IsaOps> all = {avx2_ops()};
  if (cpu.avx_vnni) all.push_back(avx2_vnni_ops());
  if (cpu.avx512_refusal.empty()) all.push_back(avx512_ops());
  if (cpu.avx512_vnni) all.push_back(avx512_vnni_ops());
  return all;
}
#endif

// The product by one instruction set's own loops, without the choice of a table.
Floats product_of(const IsaOps& ops, const PackedMatrix& weights, const Floats& x, int64_t rows) {
  Buffer inputs(static_cast<size_t>(input_bytes(weights.inputs, rows, weights.k)));
  Floats y(static_cast<size_t>(rows * weights.n));
  const LinearArgs args{&weights, x.data(), inputs.data(), y.data(), rows};
  (*select_kernels(kIntegers))->pack_inputs(args, {});
  ops.linear.run(linear_share(args, {0, weights.n}));
  return y;
}

TEST(Linear, RowsAreReadBack) {
  const int64_t n = 50, k = 768;
  for (const KernelTable* table : tables_to_test()) {
    for (DType dtype : kAllDTypes) {
      const StoredMatrix matrix = random_matrix(dtype, n, k, 22);
      const auto packed = pack_matrix(*table, matrix.view());
      const Floats expected = matrix.values();
      Floats row(k);
      const bool has_min = block_elements(dtype) > 1 && code_type(dtype).has_min;
      const float largest = *std::max_element(expected.begin(), expected.end());
      for (int64_t j = 0; j < n; ++j) {
        unpack_row(*packed, j, row.data());
        for (int64_t i = 0; i < k; ++i) {
          float tolerance =
              has_rounded_scales(dtype) && packed->layout != WeightLayout::kRows ? 1e-3F * largest : 0;
          // Numbers of bf16 and these scales have eight significant bits.
          if (packed->dtype != dtype) tolerance = std::abs(expected[j * k + i]) / 256;
          if (packed->layout == WeightLayout::kTileNibbles && !has_min)
            tolerance = std::abs(expected[j * k + i]) / 256;
          ASSERT_NEAR(row[i], expected[j * k + i], tolerance)
              << table->name << " " << dtype_name(dtype) << " " << j << "," << i;
        }
      }
    }
  }
}

// Sums of integers are exact in any order: with and without VNNI, in 4 lanes, 8, 16 or tiles.
TEST(Linear, CodeProductsHaveTheSameBitsEverywhere) {
  const auto integers = select_kernels(kIntegers);
  if (!integers.ok()) GTEST_SKIP() << integers.error().message;
  for (DType dtype : kAllDTypes) {
    if (!has_codes(dtype)) continue;
    const int64_t n = 50, k = 768, rows = 37;
    const StoredMatrix matrix = random_matrix(dtype, n, k, 17);
    const Floats x = random_floats(rows * k, 18);
    const auto dot = pack_matrix(**integers, matrix.view());
    const Floats expected = product_of(integer_ops().front(), *dot, x, rows);
    for (const IsaOps& ops : integer_ops())
      EXPECT_EQ(product_of(ops, *dot, x, rows), expected) << dtype_name(dtype);
    for (const KernelTable* table : tables_to_test()) {
      const auto packed = pack_matrix(*table, matrix.view());
      if (packed->inputs != InputLayout::kInt8Groups && packed->inputs != InputLayout::kInt8Rows) continue;
      EXPECT_EQ(product(*table, *packed, x, rows, 2), expected) << table->name << " " << dtype_name(dtype);
    }
  }
}

// Numbers of [-1, 1) that have the same bits with every compiler and library.
Floats exact_floats(size_t count, uint64_t seed) {
  std::mt19937_64 engine(seed);
  Floats numbers(count);
  for (float& number : numbers) {
    const auto whole = static_cast<int32_t>(engine() >> 40);  // 24 bits
    number = static_cast<float>(whole - (1 << 23)) / static_cast<float>(1 << 23);
  }
  return numbers;
}

StoredMatrix exact_matrix(DType dtype, int64_t n, int64_t k) {
  if (dtype >= DType::kQ2_K && dtype < DType::kF8) return random_matrix(dtype, n, k, 23);
  StoredMatrix matrix{dtype, n, k, std::vector<std::byte>(static_cast<size_t>(n * row_bytes(dtype, k)))};
  const Floats numbers = exact_floats(static_cast<size_t>(n * k), 23);
  for (int64_t j = 0; j < n; ++j)
    quantize_row(dtype, numbers.data() + j * k, matrix.bytes.data() + j * row_bytes(dtype, k), k);
  return matrix;
}

// FNV-1a of the bits.
uint64_t hash_of(const Floats& numbers) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const float number : numbers) hash = (hash ^ std::bit_cast<uint32_t>(number)) * 0x100000001B3;
  return hash;
}

// The golden file has the hashes of an x86-64 machine; the text of a failure is what a new file would hold.
TEST(Linear, CodeProductsHaveTheSameBitsOnEveryArchitecture) {
  const auto integers = select_kernels(kIntegers);
  if (!integers.ok()) GTEST_SKIP() << integers.error().message;
  std::ostringstream found;
  for (DType dtype : kAllDTypes) {
    if (!has_codes(dtype) && dtype != DType::kF8) continue;
    const int64_t n = 50, k = 768, rows = 21;
    const auto packed = pack_matrix(**integers, exact_matrix(dtype, n, k).view());
    const Floats y = product(**integers, *packed, exact_floats(rows * k, 24), rows, 2);
    found << dtype_name(dtype) << " " << std::hex << hash_of(y) << "\n";
  }
  std::ifstream file(OUTRIDER_SOURCE_DIR "/tests/data/kernels/code_products.txt");
  std::ostringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(found.str(), golden.str());
}

// The largest codes of either sign: no intermediate sum may overflow.
TEST(Linear, ExtremeCodesDoNotOverflow) {
  const int64_t n = 16, k = 4096;
  for (const KernelTable* table : tables_to_test()) {
    for (DType dtype : {DType::kQ4_0, DType::kQ8_0, DType::kI8}) {
      for (const float sign : {1.0F, -1.0F}) {
        StoredMatrix matrix{dtype, n, k,
                            std::vector<std::byte>(static_cast<size_t>(n * row_bytes(dtype, k)))};
        const Floats numbers(static_cast<size_t>(k), sign);
        for (int64_t j = 0; j < n; ++j)
          quantize_row(dtype, numbers.data(), matrix.bytes.data() + j * row_bytes(dtype, k), k);
        if (dtype == DType::kQ8_0) {
          // -128 is legal in files, though no quantiser writes it.
          for (size_t i = 0; i < matrix.bytes.size(); ++i) {
            if (i % 34 >= 2 && sign < 0) matrix.bytes[i] = static_cast<std::byte>(0x80);
          }
        }
        const Floats x(static_cast<size_t>(k), -1.0F);
        const auto packed = pack_matrix(*table, matrix.view());
        const Floats weights = matrix.values();
        double expected = 0;
        for (int64_t i = 0; i < k; ++i) expected -= weights[i];
        for (const float y : product(*table, *packed, x, 1, 1)) {
          EXPECT_NEAR(y / expected, 1, 1e-2) << table->name << " " << dtype_name(dtype);
        }
      }
    }
  }
}

TEST(Linear, PartsOfSeveralTypesArePackedAsOneMatrix) {
  const int64_t k = 256;
  const StoredMatrix first = random_matrix(DType::kF32, 20, k, 19);
  const StoredMatrix second = random_matrix(DType::kBF16, 30, k, 20);
  const std::vector<TensorView> parts = {first.view(), second.view()};
  const Floats x = random_floats(k, 21);
  for (const KernelTable* table : tables_to_test()) {
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF8, DType::kQ8_0, DType::kQ4_0, DType::kI8}) {
      const MatrixSource source{parts, dtype};
      auto packed = table->layout(source);
      ASSERT_TRUE(packed.ok());
      ASSERT_TRUE(allocate(*packed).ok());
      run_shares(3, [&](Worker worker) { table->pack(source, *packed, worker); });
      Floats expected;
      for (const StoredMatrix* matrix : {&first, &second}) {
        StoredMatrix converted{dtype, matrix->n, k,
                               std::vector<std::byte>(static_cast<size_t>(matrix->n * row_bytes(dtype, k)))};
        const Floats values = matrix->values();
        for (int64_t j = 0; j < matrix->n; ++j) {
          quantize_row(dtype, values.data() + j * k, converted.bytes.data() + j * row_bytes(dtype, k), k);
        }
        const Floats y = product(*table, *pack_matrix(*table, converted.view()), x, 1, 1);
        expected.insert(expected.end(), y.begin(), y.end());
      }
      EXPECT_EQ(product(*table, *packed, x, 1, 1), expected) << table->name << " " << dtype_name(dtype);
    }
  }
}

// Deep rows in several chunks: sums of many rows leave the registers between blocks of inputs.
TEST(Linear, DeepRowsKeepTheirBitsInLargeChunks) {
  constexpr int64_t kDepth = 5024, kOutputs = 20, kRows = 150;
  for (const KernelTable* table : tables_to_test()) {
    for (DType dtype : {DType::kBF16, DType::kQ4_0, DType::kQ8_0, DType::kI8}) {
      const StoredMatrix matrix = random_matrix(dtype, kOutputs, kDepth, 14);
      auto packed = pack_matrix(*table, matrix.view());
      ASSERT_TRUE(packed.ok());
      const Floats x = random_floats(kRows * kDepth, 15);
      const Floats together = product(*table, *packed, x, kRows, 1);
      for (int64_t r : {0, 47, 127, 128, 149}) {
        const Floats row(x.begin() + r * kDepth, x.begin() + (r + 1) * kDepth);
        const Floats alone = product(*table, *packed, row, 1, 1);
        for (int64_t j = 0; j < kOutputs; ++j)
          ASSERT_EQ(together[r * kOutputs + j], alone[j])
              << table->name << " " << dtype_name(dtype) << " " << r;
      }
    }
  }
}

}  // namespace
}  // namespace outrider
