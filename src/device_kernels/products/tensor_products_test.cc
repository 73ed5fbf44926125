// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/products/tensor_products.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <utility>

#include "device_kernels/kernel_comparison.h"
#include "device_kernels/products/tensor_test_core.h"

namespace outrider::tensor_products {
namespace {

using simt::kTileInputs;

struct TypeCase {
  const char* name;
  DType dtype;
  KernelName pack, few, many;
  int least;

  uint16_t bits(float x) const { return dtype == DType::kBF16 ? f32_to_bf16(x) : f32_to_f16(x); }
  float number(uint16_t bits) const { return dtype == DType::kBF16 ? bf16_to_f32(bits) : f16_to_f32(bits); }
  Floats rounded(Floats numbers) const {
    for (float& x : numbers) x = number(bits(x));
    return numbers;
  }
};
void PrintTo(const TypeCase& one, std::ostream* out) { *out << one.name; }

const TypeCase kTypes[] = {{"bf16", DType::kBF16, KernelName::kPackBf16Inputs, KernelName::kFewRowsTensorBf16,
                            KernelName::kManyRowsTensorBf16, -126},
                           {"f16", DType::kF16, KernelName::kPackF16Inputs, KernelName::kFewRowsTensorF16,
                            KernelName::kManyRowsTensorF16, -14}};

class TensorProducts : public testing::TestWithParam<TypeCase> {};
INSTANTIATE_TEST_SUITE_P(Types, TensorProducts, testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(info.param.name); });

// The word of two neighbouring numbers.
int word_of(const TypeCase& type, const float* numbers) {
  return static_cast<int>(type.bits(numbers[0]) | static_cast<uint32_t>(type.bits(numbers[1])) << 16);
}

// The tile [16][16] times the rows [8][16], added to sums [8][16].
Floats multiplied(const TypeCase& type, const Floats& features, const Floats& rows, const Floats& sums) {
  simt::Lanes<int> a[4], b[2];
  simt::Lanes<float> c[4];
  const auto at = [](const Floats& numbers, int row, int i) {
    return &numbers[static_cast<size_t>(row * 16 + i)];
  };
  for (int lane = 0; lane < simt::kWarp; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; ++i) {
      a[i].v[lane] = word_of(type, at(features, g + i % 2 * 8, 2 * t + i / 2 * 8));
      c[i].v[lane] = *at(sums, 2 * t + i % 2, g + i / 2 * 8);
    }
    for (int i = 0; i < 2; ++i) b[i].v[lane] = word_of(type, at(rows, g, 2 * t + i * 8));
  }
  type.dtype == DType::kBF16 ? simt::mma_bf16(c, a, b) : simt::mma_f16(c, a, b);
  Floats out(128);
  for (int place = 0; place < 128; ++place) {
    const int row = place / 16, feature = place % 16;
    out[static_cast<size_t>(place)] = c[feature / 8 * 2 + row % 2].v[feature % 8 * 4 + row / 2];
  }
  return out;
}

TEST_P(TensorProducts, TilesAreCutAsReferenceSays) {
  const TypeCase& type = GetParam();
  const ReferenceCore core{type.least};
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < 10 * kLeastOutputs; ++seed) {
    const Floats features = type.rounded(adversarial_floats(256, seed));
    const Floats rows = type.rounded(adversarial_floats(128, seed + 1000));
    const Floats sums = adversarial_floats(128, seed + 2000);
    Floats expected(128);
    for (size_t i = 0; i < 128; ++i)
      expected[i] = core.add(&features[i % 16 * 16], &rows[i / 16 * 16], sums[i]);
    comparison.add(expected, multiplied(type, features, rows, sums));
  }
  EXPECT_EQ(comparison.differing(), 0);
}

// Sixteen products of 2^-26 each are lost beside 1, and products of 2^-25 are not.
TEST_P(TensorProducts, SmallNumbersAreLostBesideLargeOnes) {
  const TypeCase& type = GetParam();
  const Floats sums(128, 1.0F);
  EXPECT_EQ(multiplied(type, Floats(256, 0x1p-13F), Floats(128, 0x1p-13F), sums), sums);
  EXPECT_EQ(multiplied(type, Floats(256, 0x1p-12F), Floats(128, 0x1p-13F), sums),
            Floats(128, 1.0F + 0x1p-21F));
}

TEST_P(TensorProducts, NumbersThatAreNotFiniteStay) {
  const TypeCase& type = GetParam();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Floats rows(128, 1.0F), sums(128, 1.0F);
  rows[0] = kInfinity;       // of row 0
  rows[16] = std::nanf("");  // of row 1
  rows[32] = kInfinity;      // of row 2, with infinities of both signs
  rows[33] = -kInfinity;
  sums[3 * 16] = -kInfinity;
  const Floats out = multiplied(type, Floats(256, 1.0F), rows, sums);
  EXPECT_EQ(out[0], kInfinity);
  EXPECT_TRUE(std::isnan(out[16]));
  EXPECT_TRUE(std::isnan(out[32]));
  EXPECT_EQ(out[48], -kInfinity);
  EXPECT_EQ(out[49], 17.0F);
}

// Weights [n][k] and inputs [rows][k].
struct ProductCase {
  TypeCase type;
  int n, k, rows;
  Floats weights = {}, x = {};

  int tiles() const { return (k + kTileInputs - 1) / kTileInputs; }
  int panels() const { return (n + simt::kPanelFeatures - 1) / simt::kPanelFeatures; }
};

ProductCase random_case(const TypeCase& type, int n, int k, int rows, uint64_t seed) {
  return {.type = type,
          .n = n,
          .k = k,
          .rows = rows,
          .weights = type.rounded(random_floats(static_cast<size_t>(n * k), seed)),
          .x = adversarial_floats(static_cast<size_t>(rows * k), seed + 1)};
}

Floats expected_product(const ProductCase& one) {
  const ReferenceCore core{one.type.least};
  const Floats x = one.type.rounded(one.x);
  Floats y(static_cast<size_t>(one.rows * one.n));
  const auto tile_of = [&](const Floats& numbers, int row, int tile) {
    std::array<float, kTileInputs> inputs = {};
    for (int i = 0; i < kTileInputs && tile * kTileInputs + i < one.k; ++i)
      inputs[static_cast<size_t>(i)] = numbers[static_cast<size_t>(row * one.k + tile * kTileInputs + i)];
    return inputs;
  };
  for (int row = 0; row < one.rows; ++row) {
    for (int feature = 0; feature < one.n; ++feature) {
      float& sum = y[static_cast<size_t>(row * one.n + feature)];
      float stretch = 0;
      for (int tile = 0; tile < one.tiles(); ++tile) {
        stretch = core.add(tile_of(one.weights, feature, tile).data(), tile_of(x, row, tile).data(), stretch);
        if ((tile + 1) % simt::TensorBf16::kStretchTiles == 0 || tile + 1 == one.tiles())
          sum += std::exchange(stretch, 0.0F);
      }
    }
  }
  return y;
}

// Weights as kernels read them.
std::vector<int> tiles_of_weights(const ProductCase& one) {
  std::vector<int> words(static_cast<size_t>(one.panels() * one.tiles() * simt::kTileWords));
  for (size_t i = 0; i < words.size(); ++i) {
    const int place = static_cast<int>(i), word = place % 4, lane = place / 4 % simt::kWarp;
    const int tile = place / simt::kTileWords % one.tiles(), panel = place / simt::kTileWords / one.tiles();
    const int feature = panel * 16 + lane / 4 + word % 2 * 8;
    const int input = tile * kTileInputs + lane % 4 * 2 + word / 2 * 8;
    float numbers[2] = {};
    for (int j = 0; j < 2; ++j) {
      if (feature < one.n && input + j < one.k)
        numbers[j] = one.weights[static_cast<size_t>(feature * one.k + input + j)];
    }
    words[i] = word_of(one.type, numbers);
  }
  return words;
}

// The product by a kernel; warps 0: by the kernel for many rows. Inputs are packed over stale words.
Floats found_product(const ProductCase& one, const std::vector<int>& weights, int warps) {
  const int padded = (one.rows + 7) / 8 * 8;
  std::vector<int> words(static_cast<size_t>(one.tiles() * padded * simt::kTileRowWords), 0x7FC07FC0);
  run_kernel(
      one.type.pack,
      simt::PackTensorInputsArgs{
          .x = rows_of(one.x), .words = rows_of(words), .rows = one.rows, .padded = padded, .k = one.k},
      {.blocks = (one.tiles() * padded / 4 + 3) / 4, .warps = 4});
  Floats y(static_cast<size_t>(one.rows * one.n), std::nanf(""));
  const simt::TensorProductArgs args{
      .weights = weights_of_test(weights),
      .x = {.words = rows_of(std::as_const(words)), .rows = one.rows, .padded = padded},
      .y = rows_of(y),
      .n = one.n,
      .k = one.k,
      .y_stride = one.n};
  if (warps > 0) {
    run_kernel(
        one.type.few, args,
        {.blocks = one.panels() * padded / 8, .warps = warps, .shared_bytes = simt::TensorMemory::kBytes});
  } else {
    const int items = one.panels() * ((padded + simt::kTensorRows - 1) / simt::kTensorRows);
    run_kernel(one.type.many, args, {.blocks = (items + 3) / 4, .warps = 4});
  }
  return y;
}

// Eight warps, two, three, and the kernel for many rows.
TEST_P(TensorProducts, KernelsAddStretchesInOrder) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < 4 * kLeastOutputs; ++seed) {
    for (const auto& [n, k] : {std::pair(16, 31), {33, 300}, {20, 1100}}) {
      for (const int rows : {1, 9, 40}) {
        const ProductCase one = random_case(GetParam(), n, k, rows, seed);
        const Floats expected = expected_product(one);
        const std::vector<int> weights = tiles_of_weights(one);
        for (const int warps : {8, 2, 3, 0}) comparison.add(expected, found_product(one, weights, warps));
      }
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

// A row is the same by itself and among others, also beside NaN.
TEST_P(TensorProducts, RowsDoNotSeeEachOther) {
  ProductCase all = random_case(GetParam(), 20, 600, 70, 5);
  std::fill_n(all.x.begin() + 3 * all.k, all.k, std::nanf(""));
  const std::vector<int> weights = tiles_of_weights(all);
  const Floats expected = found_product(all, weights, 0);
  for (const int row : {0, 2, 4, 9, 69}) {
    ProductCase one{.type = all.type, .n = all.n, .k = all.k, .rows = 1, .weights = all.weights};
    one.x.assign(all.x.begin() + row * all.k, all.x.begin() + (row + 1) * all.k);
    const Floats alone(expected.begin() + row * all.n, expected.begin() + (row + 1) * all.n);
    EXPECT_EQ(found_product(one, weights, 8), alone) << "row " << row;
  }
}

// The cuts lose less than the rounding of the inputs.
TEST_P(TensorProducts, ProductsAreNearTheirValues) {
  const ProductCase one = random_case(GetParam(), 16, 512, 8, 9);
  const Floats found = found_product(one, tiles_of_weights(one), 8), x = one.type.rounded(one.x);
  for (int place = 0; place < one.rows * one.n; ++place) {
    double exact = 0, size = 0;
    for (int i = 0; i < one.k; ++i) {
      const double product = static_cast<double>(x[static_cast<size_t>(place / one.n * one.k + i)]) *
                             static_cast<double>(one.weights[static_cast<size_t>(place % one.n * one.k + i)]);
      exact += product;
      size += std::abs(product);
    }
    EXPECT_NEAR(static_cast<double>(found[static_cast<size_t>(place)]), exact, size * 1e-6) << place;
  }
}

}  // namespace
}  // namespace outrider::tensor_products
