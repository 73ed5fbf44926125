// SPDX-License-Identifier: Apache-2.0
#include "platform/process_start.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace outrider {
namespace {

namespace fs = std::filesystem;

TEST(ProcessStart, FollowsANameThatHoldsAnything) {
  const fs::path process = fs::path(testing::TempDir()) / ("process_" + std::to_string(getpid()));
  fs::create_directories(process);
  const auto start_of = [&](const std::string& stat) {
    std::ofstream(process / "stat", std::ios::binary) << stat;
    return process_start(process);
  };
  const std::string ticks = std::to_string(7 * sysconf(_SC_CLK_TCK));
  const std::string before = " S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ";
  EXPECT_EQ(start_of("42 (a) 9 9 (b\n)" + before + ticks + " 0 0\n"), 7.0);
  EXPECT_EQ(start_of("42 (outrider)" + before), std::nullopt);
  EXPECT_EQ(start_of("42 (outrider"), std::nullopt);
  EXPECT_EQ(start_of(""), std::nullopt);
  fs::remove_all(process);
  EXPECT_EQ(process_start(process), std::nullopt);
  EXPECT_GT(process_start("/proc/self").value_or(0), 0.0);
}

}  // namespace
}  // namespace outrider
