// SPDX-License-Identifier: Apache-2.0
// Rows of tables on a device have the bits of unpack_row(), for every type, packed and as stored.
#include "device_kernels/products/look_up.h"

#include <gtest/gtest.h>

#include <numeric>

#include "device_kernels/products/product_test_data.h"
#include "device_kernels/products/stored_codes.h"
#include "kernels/packing.h"

namespace outrider {
namespace {

constexpr int kTokens = 37;
constexpr float kFactor = 1.7F;

// All rows of a table, in another order, looked up by a kernel.
class LookedUpRows {
 public:
  explicit LookedUpRows(int k) : k_(k), tokens_(kTokens), y_(static_cast<size_t>(kTokens) * k, 99.0F) {
    for (int i = 0; i < kTokens; ++i) tokens_[static_cast<size_t>(i)] = i * 5 % kTokens;
  }
  simt::LookedUp rows() {
    return {.tokens = rows_of(std::as_const(tokens_)),
            .y = rows_of(y_),
            .rows = kTokens,
            .k = k_,
            .factor = kFactor};
  }
  template <typename Args>
  void run(KernelName kernel, const Args& args) {
    const int items = kTokens * ((k_ + 31) / 32);
    run_kernel(kernel, args, {.blocks = (items + 3) / 4, .warps = 4});
  }
  void compare(const PackedMatrix& table, BitComparison& comparison) const {
    Floats expected, row(static_cast<size_t>(k_));
    for (const int token : tokens_) {
      unpack_row(table, token, row.data());
      for (float& number : row) number *= kFactor;
      expected.insert(expected.end(), row.begin(), row.end());
    }
    comparison.add(expected, y_);
  }

 private:
  int k_;
  std::vector<int> tokens_;
  Floats y_;
};

template <typename Stored>
simt::Weights<Stored> words_of(const std::byte* data, int64_t bytes) {
  return {reinterpret_cast<const Stored*>(data), bytes / static_cast<int64_t>(sizeof(Stored))};
}

template <typename Numbers>
void look_up_plain(KernelName kernel, const PackedMatrix& table, LookedUpRows& rows) {
  using Stored = typename Numbers::Stored;
  rows.run(kernel, simt::FloatTableArgs<Numbers>{.table = words_of<Stored>(table.data.data(), table.bytes()),
                                                 .of = rows.rows(),
                                                 .panel = static_cast<int>(table.panel_features)});
}

void look_up_numbers(const PackedMatrix& table, LookedUpRows& rows) {
  if (table.dtype == DType::kF32) return look_up_plain<simt::F32Weights>(KernelName::kLookUpF32, table, rows);
  if (table.dtype == DType::kF16) return look_up_plain<simt::F16Weights>(KernelName::kLookUpF16, table, rows);
  look_up_plain<simt::Bf16Weights>(KernelName::kLookUpBf16, table, rows);
}

void look_up_packed(const PackedMatrix& table, LookedUpRows& rows) {
  if (table.layout == WeightLayout::kPanels) return look_up_numbers(table, rows);
  const auto matrix = device_matrix(table);
  ASSERT_TRUE(matrix.ok());
  if (matrix->form == WeightForm::kChannels) {
    rows.run(KernelName::kLookUpChannels,
             simt::ChannelTableArgs{.table = matrix->channels(), .of = rows.rows()});
    return;
  }
  const int kernel = static_cast<int>(KernelName::kLookUpCentredNibbles) + static_cast<int>(matrix->form);
  rows.run(static_cast<KernelName>(kernel),
           simt::GroupedTableArgs{.table = matrix->grouped(), .of = rows.rows()});
}

void look_up_stored(const PackedMatrix& table, LookedUpRows& rows) {
  if (!has_codes(table.dtype)) return look_up_numbers(table, rows);
  const StoredCodes stored = stored_codes(table);
  const bool has_mins = !stored.mins.empty();
  rows.run(KernelName::kLookUpCodes, simt::CodeTableArgs{.codes = weights_of_test(stored.codes),
                                                         .scales = weights_of_test(stored.scales),
                                                         .mins = has_mins ? weights_of_test(stored.mins)
                                                                          : simt::Weights<float>{nullptr, 0},
                                                         .of = rows.rows(),
                                                         .group = stored.group});
}

TEST(DeviceLookUp, EveryTypeHasTheBitsOfThisMachine) {
  OUTRIDER_REQUIRE_TABLES();
  BitComparison comparison;
  for (const DType type : kAllDTypes) {
    if (type == DType::kF8) continue;  // no type of tables
    for (const int blocks : {1, 3}) {
      SCOPED_TRACE(std::string(dtype_name(type)) + ", blocks " + std::to_string(blocks));
      const int block = static_cast<int>(std::max<int64_t>(32, block_elements(type)));
      const int k = blocks * block + (block_elements(type) == 1 ? 7 : 0);
      const StoredMatrix stored = random_matrix(type, kTokens, k, 1);
      LookedUpRows packed_rows(k), stored_rows(k);
      const auto packed = pack_matrix(*compared_tables().front(), stored.view());
      ASSERT_TRUE(packed.ok());
      look_up_packed(*packed, packed_rows);
      packed_rows.compare(*packed, comparison);
      const TensorView view = stored.view();
      const MatrixSource source{.parts = {&view, 1}, .dtype = type};
      auto table = row_layout(source);
      ASSERT_TRUE(table.ok() && allocate(*table).ok());
      pack_panels(source, *table, {.index = 0, .count = 1});
      look_up_stored(*table, stored_rows);
      stored_rows.compare(*table, comparison);
    }
  }
  EXPECT_GT(comparison.compared(), kLeastOutputs);
  EXPECT_EQ(comparison.differing(), 0);
}

}  // namespace
}  // namespace outrider
