// SPDX-License-Identifier: Apache-2.0
#include "platform/process_usage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>

namespace outrider {
namespace {

TEST(ProcessUsage, IsThisProcess) {
  const ProcessUsage before = process_usage();
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_LE(before.start_time, now + 1);
  EXPECT_GT(before.start_time, now - 3600);
  EXPECT_GT(before.resident_bytes, 1 << 20);
  EXPECT_GT(before.virtual_bytes, before.resident_bytes);
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(before.max_files, static_cast<int64_t>(limit.rlim_cur));
  EXPECT_GE(before.open_files, 3);
}

TEST(ProcessUsage, CountsFilesAndTime) {
  const ProcessUsage before = process_usage();
  const int file = ::open("/dev/null", O_RDONLY);
  EXPECT_EQ(process_usage().open_files, before.open_files + 1);
  ::close(file);
  EXPECT_EQ(process_usage().open_files, before.open_files);
  const std::clock_t end = std::clock() + CLOCKS_PER_SEC / 20;
  while (std::clock() < end) {
  }
  EXPECT_GE(process_usage().cpu_seconds, before.cpu_seconds + 0.04);
}

}  // namespace
}  // namespace outrider
