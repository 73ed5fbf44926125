// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/products/stacked_products.h"

#include <gtest/gtest.h>

#include <string>

#include "device_kernels/products/product_test_data.h"

namespace outrider {
namespace {

constexpr int kMatrices = 3, kTiles = 5, kPlaces = kTiles * 8;
const std::vector<int> kTileMatrices = {2, 0, -1, 2, 1};

// Matrices of one type, packed by a table, and all of them as a device has them.
struct MatrixStack {
  std::vector<PackedMatrix> packed;
  DeviceMatrix all;

  MatrixStack(const KernelTable& table, DType type, int n, int k, uint64_t seed) {
    for (int i = 0; i < kMatrices; ++i) {
      auto one = pack_matrix(table, random_matrix(type, n, k, seed + static_cast<uint64_t>(i)).view());
      EXPECT_TRUE(one.ok());
      const auto made = device_matrix(*one);
      EXPECT_TRUE(made.ok());
      packed.push_back(std::move(*one));
      if (i == 0) all = {.form = made->form, .n = n, .k = k};
      std::copy_n(made->numbers, 4, all.numbers);
      all.codes.insert(all.codes.end(), made->codes.begin(), made->codes.end());
      all.scales.insert(all.scales.end(), made->scales.begin(), made->scales.end());
      all.mins.insert(all.mins.end(), made->mins.begin(), made->mins.end());
      all.units.insert(all.units.end(), made->units.begin(), made->units.end());
    }
  }
};

// Each tile times its matrix; places without one keep a number that no product gives.
Floats expected_product(const KernelTable& table, const MatrixStack& stack, const Floats& x, int n, int k) {
  Floats y(static_cast<size_t>(kPlaces * n), 0.25F);
  for (int tile = 0; tile < kTiles; ++tile) {
    const int matrix = kTileMatrices[static_cast<size_t>(tile)];
    if (matrix < 0) continue;
    const Floats rows(x.begin() + tile * 8 * k, x.begin() + (tile + 1) * 8 * k);
    const Floats of_tile = product(table, stack.packed[static_cast<size_t>(matrix)], rows, 8, 1);
    std::ranges::copy(of_tile, y.begin() + tile * 8 * n);
  }
  return y;
}

template <typename Args>
void run_stacked(KernelName kernel, const Args& product, int n, int shared_bytes, uint64_t seed) {
  run_kernel(
      kernel,
      simt::StackedArgs<Args>{.product = product, .tiles = rows_of(kTileMatrices), .matrices = kMatrices},
      {.blocks = (n + 15) / 16 * kTiles, .warps = 8, .shared_bytes = shared_bytes}, seed);
}

template <typename Numbers>
void run_plain(KernelName kernel, const MatrixStack& stack, const Floats& x, Floats& y, uint64_t seed) {
  const auto n = static_cast<int>(stack.all.n);
  run_stacked(kernel,
              simt::FloatProductArgs<Numbers>{.weights = stack.all.plain<typename Numbers::Stored>(),
                                              .scales = stack.all.block_scales(),
                                              .x = rows_of(x),
                                              .y = rows_of(y),
                                              .rows = kPlaces,
                                              .n = n,
                                              .k = static_cast<int>(stack.all.k),
                                              .y_stride = n},
              n, simt::FloatMemory::kBytes, seed);
}

void run_form(const MatrixStack& stack, const Floats& x, Floats& y, uint64_t seed) {
  const auto n = static_cast<int>(stack.all.n);
  switch (stack.all.form) {
    case WeightForm::kChannels: {
      const PackedChannelInputs inputs(x, kPlaces, static_cast<int>(stack.all.k), seed);
      return run_stacked(
          KernelName::kStackedChannelRows,
          simt::ChannelProductArgs{
              .weights = stack.all.channels(), .x = inputs.inputs(), .y = rows_of(y), .y_stride = n},
          n, simt::ChannelMemory::kBytes, seed);
    }
    case WeightForm::kF32:
      return run_plain<simt::F32Weights>(KernelName::kStackedF32Rows, stack, x, y, seed);
    case WeightForm::kF16:
      return run_plain<simt::F16Weights>(KernelName::kStackedF16Rows, stack, x, y, seed);
    case WeightForm::kBF16:
      return run_plain<simt::Bf16Weights>(KernelName::kStackedBf16Rows, stack, x, y, seed);
    case WeightForm::kF8:
      return run_plain<simt::F8Weights>(KernelName::kStackedF8Rows, stack, x, y, seed);
    default: {
      const PackedInputs inputs(x, kPlaces, static_cast<int>(stack.all.k), seed);
      const auto kernel =
          static_cast<int>(KernelName::kStackedFewRowsCentredNibbles) + static_cast<int>(stack.all.form);
      run_stacked(static_cast<KernelName>(kernel),
                  simt::GroupedProductArgs{
                      .weights = stack.all.grouped(), .x = inputs.inputs(), .y = rows_of(y), .y_stride = n},
                  n, simt::FewRowsMemory::kBytes, seed);
    }
  }
}

class DeviceStackedProduct : public testing::TestWithParam<DType> {};

TEST_P(DeviceStackedProduct, EqualsTheTables) {
  OUTRIDER_REQUIRE_TABLES();
  BitComparison comparison;
  const int block = static_cast<int>(std::max<int64_t>(32, block_elements(GetParam())));
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const KernelTable* table : compared_tables()) {
      for (const auto& [n, k] : {std::pair(16, block), {33, 3 * block}}) {
        const MatrixStack stack(*table, GetParam(), n, k, seed);
        const Floats x = adversarial_floats(static_cast<size_t>(kPlaces * k), seed + 9);
        Floats y(static_cast<size_t>(kPlaces * n), 0.25F);
        run_form(stack, x, y, seed);
        comparison.add(expected_product(*table, stack, x, n, k), y);
      }
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceStackedProduct, testing::ValuesIn(kAllDTypes),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace outrider
