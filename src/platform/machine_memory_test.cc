// SPDX-License-Identifier: Apache-2.0
#include "platform/machine_memory.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "platform/resident_pages.h"

namespace outrider {
namespace {

TEST(MachineMemory, PagesThatAreGivenBackAreNotResident) {
  constexpr size_t kBytes = 1 << 20;
  std::vector<std::byte> bytes(3 * kBytes, std::byte{7});
  const std::span<const std::byte> middle = std::span(bytes).subspan(kBytes, kBytes);
  EXPECT_GT(resident_pages(middle), 10);
  give_pages_back(middle);
  EXPECT_EQ(resident_pages(middle), 0);
  EXPECT_EQ(bytes[kBytes + kBytes / 2], std::byte{0});
  for (const size_t beside : {size_t{0}, kBytes - 1, 2 * kBytes, 3 * kBytes - 1})
    EXPECT_EQ(bytes[beside], std::byte{7}) << beside;
}

TEST(MachineMemory, PartsOfPagesStay) {
  std::vector<std::byte> bytes(100, std::byte{7});
  give_pages_back(bytes);
  EXPECT_EQ(bytes, std::vector<std::byte>(100, std::byte{7}));
}

}  // namespace
}  // namespace outrider
