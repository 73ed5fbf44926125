// SPDX-License-Identifier: Apache-2.0
// Every table writes cached heads that read back as what was stored, rounded to the type.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/attention_test_data.h"

namespace outrider {
namespace {

std::vector<std::byte> stored(const KernelTable& table, DType type, const Floats& x, int64_t head_dim) {
  const int64_t heads = static_cast<int64_t>(x.size()) / head_dim;
  std::vector<std::byte> out(static_cast<size_t>(heads * cached_head_bytes(type, head_dim)));
  table.store_kv({x.data(), out.data(), type, heads, head_dim});
  return out;
}

// One stored head, padding included.
Floats read_head(DType type, const std::vector<std::byte>& bytes, int64_t head, int64_t head_dim) {
  Floats numbers(static_cast<size_t>((head_dim + 31) / 32 * 32));
  dequantize_row(type, bytes.data() + head * cached_head_bytes(type, head_dim), numbers.data(),
                 static_cast<int64_t>(numbers.size()));
  return numbers;
}

TEST(StoreKv, RoundsToTheNearest) {
  constexpr int64_t kHeads = 3;
  for (const KernelTable* table : tables_to_test()) {
    for (const DType type : kKvTypes) {
      for (const int64_t head_dim : {1, 15, 32, 40, 64, 100}) {
        const Floats x = random_floats(kHeads * head_dim, 40);
        const auto bytes = stored(*table, type, x, head_dim);
        for (int64_t head = 0; head < kHeads; ++head) {
          const Floats read = read_head(type, bytes, head, head_dim);
          for (int64_t d = 0; d < static_cast<int64_t>(read.size()); ++d) {
            const float number = d < head_dim ? x[head * head_dim + d] : 0;
            float largest = 0;  // largest magnitude of the block of 32
            for (int64_t i = d / 32 * 32; i < std::min(head_dim, d / 32 * 32 + 32); ++i)
              largest = std::max(largest, std::abs(x[head * head_dim + i]));
            if (type == DType::kF32) {
              ASSERT_EQ(read[d], number);
            }
            if (type == DType::kBF16) {
              ASSERT_EQ(read[d], bf16_to_f32(f32_to_bf16(number)));
            }
            if (type == DType::kF16) {
              ASSERT_EQ(read[d], f16_to_f32(f32_to_f16(number)));
            }
            if (type == DType::kE4M3) {
              ASSERT_EQ(read[d], e4m3_to_f32(f32_to_e4m3(number)));
              continue;
            }
            // The error is at most half a code plus half a unit of the f16 scale times the code.
            ASSERT_NEAR(read[d], number, largest * (0.501 / 127 + 0.0005))
                << table->name << " " << dtype_name(type);
            if (d >= head_dim) {
              ASSERT_EQ(read[d], 0);
            }
          }
        }
      }
    }
  }
}

TEST(StoreKv, WhatIsNotFiniteStaysSoAndStaysInItsBlock) {
  constexpr int64_t kHeadDim = 64;
  for (const KernelTable* table : tables_to_test()) {
    for (const DType type : kKvTypes) {
      for (const float bad :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        Floats x = random_floats(2 * kHeadDim, 41);
        const auto good = stored(*table, type, x, kHeadDim);
        x[37] = bad;
        const auto bytes = stored(*table, type, x, kHeadDim);
        EXPECT_FALSE(std::isfinite(read_head(type, bytes, 0, kHeadDim)[37]))
            << table->name << dtype_name(type);
        const auto half = static_cast<size_t>(cached_head_bytes(type, 32));
        EXPECT_EQ(std::memcmp(bytes.data(), good.data(), half), 0);
        EXPECT_EQ(std::memcmp(bytes.data() + 2 * half, good.data() + 2 * half, 2 * half), 0);
      }
    }
  }
}

// Every border between two numbers of E4M3, and what lies beside it.
TEST(StoreKv, E4m3RoundsToNearestEven) {
  Floats x;
  for (uint8_t code = 0; code < 0x7E; ++code) {
    const float middle = (e4m3_to_f32(code) + e4m3_to_f32(code + 1)) / 2;
    for (const float number : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)})
      x.insert(x.end(), {number, -number});
  }
  x.insert(x.end(), {0.0F, -0.0F, 448.0F, 449.0F, -1e30F, 1e-40F});
  x.resize((x.size() + 31) / 32 * 32);
  for (const KernelTable* table : tables_to_test()) {
    const auto head_dim = static_cast<int64_t>(x.size());
    const auto bytes = stored(*table, DType::kE4M3, x, head_dim);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(static_cast<uint8_t>(bytes[i]), f32_to_e4m3(x[i])) << table->name << " " << x[i];
  }
}

TEST(StoreKv, ZerosAndTinyNumbersAreFine) {
  for (const KernelTable* table : tables_to_test()) {
    for (const DType type : kKvTypes) {
      Floats x(32, 0);
      x[3] = 1e-30F;
      for (const float number : read_head(type, stored(*table, type, x, 32), 0, 32)) {
        EXPECT_NEAR(number, 0, 1e-20) << table->name << dtype_name(type);
      }
    }
  }
}

}  // namespace
}  // namespace outrider
