// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/products/product_test_data.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace outrider {
namespace {

// A product by three kernels: few rows with eight warps and with two, and many rows.
struct DeviceProducts {
  Floats eight_warps, two_warps, many;

  DeviceProducts(const DeviceMatrix& matrix, const PackedInputs& x, uint64_t seed) {
    const auto n = static_cast<int>(matrix.n);
    for (Floats* y : {&eight_warps, &two_warps, &many})
      y->assign(static_cast<size_t>(x.rows) * n, std::numeric_limits<float>::quiet_NaN());
    simt::GroupedProductArgs args{
        .weights = matrix.grouped(), .x = x.inputs(), .y = rows_of(eight_warps), .y_stride = n};
    const int panels = (n + 15) / 16;
    LaunchShape few{.blocks = panels * x.padded / 8, .warps = 8, .shared_bytes = simt::FewRowsMemory::kBytes};
    run_kernel(few_rows_of(matrix.form), args, few, seed);
    args.y = rows_of(two_warps);
    few.warps = 2;
    run_kernel(few_rows_of(matrix.form), args, few, seed + 1);
    args.y = rows_of(many);
    run_kernel(many_rows_of(matrix.form), args,
               {.blocks = (panels * ((x.padded + 31) / 32) + 3) / 4, .warps = 4}, seed + 2);
  }
};

struct ProductCase {
  DType type;
  int n, k, rows;
  uint64_t seed;
};

void compare_products(const KernelTable& table, const ProductCase& one, BitComparison& comparison) {
  SCOPED_TRACE(std::string(dtype_name(one.type)) + " " + std::to_string(one.n) + " x " +
               std::to_string(one.k) + ", " + std::to_string(one.rows) + " rows, " + std::string(table.name));
  const StoredMatrix stored = random_matrix(one.type, one.n, one.k, one.seed);
  auto packed = pack_matrix(table, stored.view());
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  Floats x = adversarial_floats(static_cast<size_t>(one.rows * one.k), one.seed + 3);
  if (one.rows > 2) std::fill_n(x.begin() + one.k, one.k, 0.0F);
  const auto matrix = device_matrix(*packed);
  ASSERT_TRUE(matrix.ok()) << matrix.error().message;
  const DeviceProducts found(*matrix, PackedInputs(x, one.rows, one.k, one.seed), one.seed);
  const Floats expected = product(table, *packed, x, one.rows, 1);
  comparison.add(expected, found.eight_warps);
  comparison.add(expected, found.two_warps);
  comparison.add(expected, found.many);
}

class DeviceProduct : public testing::TestWithParam<DType> {};

TEST_P(DeviceProduct, EqualsTheTables) {
  OUTRIDER_REQUIRE_TABLES();
  BitComparison comparison;
  const int block = static_cast<int>(std::max<int64_t>(32, block_elements(GetParam())));
  const std::pair<int, int> shapes[] = {{16, block}, {33, 3 * block}, {70, block * (768 / block)}};
  for (uint64_t seed = 1; comparison.compared() < kRunsOfProduct * kLeastOutputs; ++seed) {
    for (const KernelTable* table : compared_tables()) {
      for (const auto& [n, k] : shapes) {
        for (const int rows : {1, 3, 8, 9, 40})
          compare_products(*table, {GetParam(), n, k, rows, seed}, comparison);
      }
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

std::vector<DType> grouped_types() {
  std::vector<DType> types;
  for (const DType type : kAllDTypes) {
    if (has_codes(type) && type != DType::kI8) types.push_back(type);
  }
  return types;
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceProduct, testing::ValuesIn(grouped_types()),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace outrider
