// SPDX-License-Identifier: Apache-2.0
#include "platform/machine_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "platform/resident_pages.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

class MachineMemoryTest : public testing::Test {
 protected:
  MachineMemoryTest() { fs::remove_all(root_); }
  ~MachineMemoryTest() override { fs::remove_all(root_); }

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_ = fs::path(testing::TempDir()) / "machine_memory";
};

TEST_F(MachineMemoryTest, WithoutGroupsThereIsNoLimit) { EXPECT_EQ(control_group_limit(root_), 0); }

TEST_F(MachineMemoryTest, TheSmallestLimitOfAGroupAndTheGroupsAroundItCounts) {
  write("proc/self/cgroup", "0::/system.slice/outrider.service\n");
  write("sys/fs/cgroup/system.slice/outrider.service/memory.max", "max\n");
  EXPECT_EQ(control_group_limit(root_), 0);
  write("sys/fs/cgroup/system.slice/memory.max", "3000\n");
  EXPECT_EQ(control_group_limit(root_), 3000);
  write("sys/fs/cgroup/system.slice/outrider.service/memory.max", "2000\n");
  EXPECT_EQ(control_group_limit(root_), 2000);
}

TEST_F(MachineMemoryTest, AContainerSeesItsGroupAtTheMount) {
  write("proc/self/cgroup", "0::/../outside\n");
  write("sys/fs/cgroup/memory.max", "1000\n");
  EXPECT_EQ(control_group_limit(root_), 1000);
}

TEST_F(MachineMemoryTest, TheFirstVersionOfGroupsIsKnown) {
  write("proc/self/cgroup", "9:name=systemd:/\n4:memory:/a/b\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "5000\n");
  EXPECT_EQ(control_group_limit(root_), 5000);
}

TEST_F(MachineMemoryTest, CopiesOfFilesAreAvailable) {
  write("proc/meminfo",
        "MemTotal:  9000 kB\nMemFree:  1000 kB\nMemAvailable:  7000 kB\nHugePages_Free: 0\nCached: 5 kB\n");
  EXPECT_EQ(available_memory(root_), 7000 * 1024);
}

TEST_F(MachineMemoryTest, WhatAGroupAllowsBesidesThisProcessIsAvailable) {
  const int64_t own = resident_memory();
  write("proc/meminfo", "MemAvailable: " + std::to_string(own / 1024 + 9000000) + " kB\n");
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", std::to_string(own + 100000000) + "\n");
  EXPECT_NEAR(static_cast<double>(available_memory(root_)), 1e8, 1e7);  // the process grows meanwhile
  write("sys/fs/cgroup/memory.max", "1000\n");
  EXPECT_EQ(available_memory(root_), 0);
}

TEST_F(MachineMemoryTest, TheProcessMayUseSomeMemory) {
  EXPECT_GT(available_memory(), 0);
  EXPECT_GT(machine_memory(), resident_memory());
  EXPECT_GT(resident_memory(), 0);
}

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
