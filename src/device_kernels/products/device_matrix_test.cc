// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/products/device_matrix.h"

#include <gtest/gtest.h>

#include "device_kernels/kernel_comparison.h"
#include "kernels/packing.h"

namespace outrider {
namespace {

template <typename T>
int64_t bytes_of(const std::vector<T>& numbers) {
  return static_cast<int64_t>(numbers.size() * sizeof(T));
}

TEST(DeviceMatrix, BytesAreKnownBefore) {
  OUTRIDER_REQUIRE_TABLES();
  for (const DType dtype : kAllDTypes) {
    for (const int64_t n : {16, 37}) {
      const int64_t k = block_elements(dtype) == 1 ? 70 : 3 * block_elements(dtype);
      const StoredMatrix stored = random_matrix(dtype, n, k, 3);
      const auto packed = pack_matrix(*compared_tables().front(), stored.view());
      ASSERT_TRUE(packed.ok());
      const auto matrix = device_matrix(*packed);
      ASSERT_TRUE(matrix.ok());
      EXPECT_EQ(device_matrix_bytes(dtype, n, k), bytes_of(matrix->codes) + bytes_of(matrix->scales) +
                                                      bytes_of(matrix->mins) + bytes_of(matrix->units))
          << dtype_name(dtype);
    }
  }
}

}  // namespace
}  // namespace outrider
