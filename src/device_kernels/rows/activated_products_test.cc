// SPDX-License-Identifier: Apache-2.0
// A product and its activation in one launch have the bits of two.
#include "device_kernels/rows/activated_products.h"

#include <gtest/gtest.h>

#include "device_kernels/products/product_test_data.h"
#include "tensor/activation.h"

namespace outrider {
namespace {

struct ActivatedCase {
  DType type;
  Activation activation;
  bool is_gated;
  int rows;
  uint64_t seed;
};

// Launches for one matrix, over NaN.
class ActivatedProduct {
 public:
  static constexpr int kDim = 96, kInputs = 512;

  ActivatedProduct(const PackedMatrix& matrix, const ActivatedCase& one)
      : one_(one),
        x_(adversarial_floats(static_cast<size_t>(one.rows * kInputs), one.seed), one.rows, kInputs,
           one.seed),
        packed(one.rows, kDim) {
    auto made = device_matrix(matrix);
    EXPECT_TRUE(made.ok());
    matrix_ = std::move(*made);
    products.assign(static_cast<size_t>(one.rows * matrix_.n), std::nanf(""));
    y.assign(static_cast<size_t>(one.rows * kDim), std::nanf(""));
    arrivals.assign(static_cast<size_t>(x_.padded / 8 * (kDim / 32)), 0);
  }
  void run_one(int warps) {
    const auto name = static_cast<KernelName>(static_cast<int>(KernelName::kActivatedFewRowsCentredNibbles) +
                                              static_cast<int>(matrix_.form));
    run_kernel(name,
               simt::ActivatedProductArgs{.product = product(),
                                          .activation = activation(),
                                          .function = static_cast<int>(one_.activation),
                                          .arrivals = rows_of(arrivals)},
               shape(warps), one_.seed);
  }
  void run_two() {
    run_kernel(few_rows_of(matrix_.form), product(), shape(8), one_.seed);
    const auto name =
        static_cast<KernelName>(static_cast<int>(KernelName::kSilu) + static_cast<int>(one_.activation));
    run_kernel(name, activation(), {.blocks = packed.padded * kDim / 32, .warps = 1}, one_.seed);
  }

 private:
  simt::GroupedProductArgs product() {
    return {.weights = matrix_.grouped(),
            .x = x_.inputs(),
            .y = rows_of(products),
            .y_stride = static_cast<int>(matrix_.n)};
  }
  simt::ActivationArgs activation() {
    return {.x = rows_of(std::as_const(products)),
            .y = rows_of(y),
            .rows = one_.rows,
            .dim = kDim,
            .is_gated = one_.is_gated ? 1 : 0,
            .packed = packed.to()};
  }
  LaunchShape shape(int warps) const {
    return {.blocks = static_cast<int>(matrix_.n) / 16 * x_.padded / 8,
            .warps = warps,
            .shared_bytes = simt::FewRowsMemory::kBytes};
  }

  ActivatedCase one_;
  PackedInputs x_;
  DeviceMatrix matrix_;

 public:
  Floats products, y;
  PackedInputs packed;
  std::vector<int> arrivals;
};

void compare(const KernelTable& table, const ActivatedCase& one, BitComparison& comparison) {
  SCOPED_TRACE(std::string(dtype_name(one.type)) + ", function " +
               std::to_string(static_cast<int>(one.activation)) + ", " + std::to_string(one.rows) + " rows");
  const int features = ActivatedProduct::kDim * (one.is_gated ? 2 : 1);
  const auto matrix =
      pack_matrix(table, random_matrix(one.type, features, ActivatedProduct::kInputs, one.seed).view());
  ASSERT_TRUE(matrix.ok()) << matrix.error().message;
  ActivatedProduct two(*matrix, one);
  two.run_two();
  for (const int warps : {8, 2}) {
    ActivatedProduct together(*matrix, one);
    together.run_one(warps);
    comparison.add(two.products, together.products);
    comparison.add(two.y, together.y);
    comparison.add(two.packed.scales, together.packed.scales);
    EXPECT_EQ(two.packed.codes, together.packed.codes);
    EXPECT_EQ(two.packed.sums, together.packed.sums);
    EXPECT_EQ(together.arrivals, std::vector<int>(together.arrivals.size()));
  }
}

TEST(ActivatedProducts, HaveTheBitsOfTwoLaunches) {
  OUTRIDER_REQUIRE_TABLES();
  constexpr Activation kFunctions[] = {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh,
                                       Activation::kRelu, Activation::kClampedSwiglu};
  constexpr DType kTypes[] = {DType::kQ4_0, DType::kQ4_1, DType::kQ2_K, DType::kIQ4_NL,
                              DType::kQ8_0, DType::kQ5_1, DType::kQ6_K};
  BitComparison comparison;
  uint64_t seed = 0;
  for (const KernelTable* table : compared_tables()) {
    for (const DType type : kTypes) {
      for (const Activation activation : kFunctions) {
        ++seed;
        const int rows = static_cast<int>(1 + seed * 5 % 16);
        compare(*table, {type, activation, seed % 3 != 0, rows, seed}, comparison);
      }
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
  EXPECT_GT(comparison.compared(), 100'000);
}

// One arrival too many: a chunk goes on before its last panel is there.
TEST(ActivatedProducts, AnEarlyArrivalIsFound) {
  OUTRIDER_REQUIRE_TABLES();
  const ActivatedCase one{DType::kQ4_0, Activation::kSilu, true, 9, 1};
  const auto matrix =
      pack_matrix(*compared_tables().front(),
                  random_matrix(one.type, 2 * ActivatedProduct::kDim, ActivatedProduct::kInputs, 1).view());
  ASSERT_TRUE(matrix.ok());
  ActivatedProduct right(*matrix, one), early(*matrix, one);
  right.run_one(8);
  std::ranges::fill(early.arrivals, 1);
  early.run_one(8);
  EXPECT_NE(right.y, early.y);
}

}  // namespace
}  // namespace outrider
