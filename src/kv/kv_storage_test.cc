// SPDX-License-Identifier: Apache-2.0
#include "kv/kv_storage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/kernel_table.h"

namespace outrider {
namespace {

constexpr int64_t kStoredHeads = 2, kStoredLayers = 2, kStoredSlots = 8;

// A number of one place, of which every type keeps about 1 %.
float stored_number(const KvRow& row, int64_t i) {
  return std::sin(
      static_cast<float>(100 * row.layer + 50 * (row.part == KvPart::kValues) + 10 * row.slot + i));
}

std::vector<KvRow> all_stored_rows() {
  std::vector<KvRow> rows;
  for (int64_t layer = 0; layer < kStoredLayers; ++layer) {
    for (const KvPart part : {KvPart::kKeys, KvPart::kValues}) {
      for (int64_t slot = 0; slot < kStoredSlots; ++slot) rows.push_back({layer, part, slot});
    }
  }
  return rows;
}

// Makes every number stored_number().
void fill(HostPages& pages, const KvShape& shape) {
  for (const KvRow& row : all_stored_rows()) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < kStoredHeads * shape.head_dim; ++i) numbers.push_back(stored_number(row, i));
    std::byte* const begin = row.part == KvPart::kKeys ? pages.keys(row.layer) : pages.values(row.layer);
    select_kernels("reference")
        .value()
        ->store_kv({.x = numbers.data(),
                    .out = begin + row.slot * shape.row_bytes(),
                    .type = shape.type,
                    .heads = kStoredHeads,
                    .head_dim = shape.head_dim});
  }
}

class HostPagesTest : public testing::TestWithParam<DType> {};

TEST_P(HostPagesTest, ReadsWhatOperationsWrote) {
  for (const int64_t dim : {16, 32, 72}) {  // heads are stored in units of 32
    const KvShape shape{.layer_count = kStoredLayers,
                        .kv_head_count = kStoredHeads,
                        .head_dim = dim,
                        .type = GetParam(),
                        .page_size = 4,
                        .page_count = kStoredSlots / 4};
    HostPages pages(shape);
    fill(pages, shape);
    pages.clear(3, 2);
    constexpr float kUntouched = 7.0f;
    const int64_t stride = dim + 3;
    for (const KvRow& row : all_stored_rows()) {
      std::vector<float> out(static_cast<size_t>(kStoredHeads * stride), kUntouched);
      pages.read(row, out.data(), stride);
      const bool is_cleared = row.slot == 3 || row.slot == 4;
      for (int64_t i = 0; i < kStoredHeads * stride; ++i) {
        const int64_t head = i / stride, place = i % stride;
        const float expected = is_cleared ? 0.0f : stored_number(row, head * dim + place);
        const double rounding = GetParam() == DType::kE4M3 ? std::abs(expected) / 16 + 0x1p-10 : 0.01;
        ASSERT_NEAR(out[static_cast<size_t>(i)], place < dim ? expected : kUntouched, rounding)
            << "dim " << dim << ", layer " << row.layer << ", slot " << row.slot << ", number " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, HostPagesTest,
                         testing::Values(DType::kF32, DType::kBF16, DType::kF16, DType::kE4M3, DType::kQ8_0),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace outrider
