// SPDX-License-Identifier: Apache-2.0
// A matrix whose rows are made when they are read packs like one that is stored, with every table.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/kernel_table.h"
#include "kernels/kernel_test_data.h"

namespace outrider {
namespace {

class StoredRows final : public RowSource {
 public:
  explicit StoredRows(const TensorView& view) : view_(view) {}
  void read_row(int64_t row, std::byte* out) const override {
    const int64_t bytes = row_bytes(view_.dtype, view_.cols());
    std::memcpy(out, view_.data + row * bytes, static_cast<size_t>(bytes));
  }
  std::span<const std::byte> stored(int64_t, int64_t) const override {
    return {view_.data, static_cast<size_t>(view_.bytes())};
  }

 private:
  TensorView view_;
};

std::vector<std::byte> packed_bytes(const KernelTable& table, const TensorView& view, DType dtype) {
  const MatrixSource source{{&view, 1}, dtype};
  PackedMatrix packed = table.layout(source).value();
  EXPECT_TRUE(allocate(packed).ok());
  table.pack(source, packed, Worker{});
  return {packed.data.data(), packed.data.data() + packed.data.size()};
}

TEST(RowSource, PacksAsStoredRowsDo) {
  constexpr int64_t kRows = 37, kCols = 256, kFirst = 5;
  const Floats numbers = random_floats(kRows * kCols, 7);
  for (const DType stored : {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_0}) {
    std::vector<std::byte> bytes(static_cast<size_t>(kRows * row_bytes(stored, kCols)));
    for (int64_t row = 0; row < kRows; ++row)
      quantize_row(stored, numbers.data() + row * kCols, bytes.data() + row * row_bytes(stored, kCols),
                   kCols);
    const TensorView view{stored, {kRows, kCols}, bytes.data()};
    const StoredRows source(view);
    const TensorView made{.dtype = stored, .shape = {kRows, kCols}, .source = &source};
    for (const DType dtype : {stored, DType::kQ8_0}) {
      for (const KernelTable* table : tables_to_test()) {
        SCOPED_TRACE(std::string(table->name) + " " + std::string(dtype_name(stored)));
        EXPECT_EQ(packed_bytes(*table, made, dtype), packed_bytes(*table, view, dtype));
        EXPECT_EQ(packed_bytes(*table, made.rows_from(kFirst, 20), dtype),
                  packed_bytes(*table, view.rows_from(kFirst, 20), dtype));
      }
    }
  }
}

}  // namespace
}  // namespace outrider
