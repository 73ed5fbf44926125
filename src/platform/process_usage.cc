// SPDX-License-Identifier: Apache-2.0
#include "platform/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

#include "platform/machine_memory.h"
#include "platform/process_start.h"

namespace outrider {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double cpu_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// When the machine started, in Unix time.
double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  }
  return 0;
}

double start_time() {
  const std::optional<double> start = process_start("/proc/self");
  return start ? boot_time() + *start : 0;
}

int64_t open_files() {
  int64_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    ++count;
  }
  return count - 1;  // the folder itself
}

int64_t max_files() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(limit.rlim_cur < kMost ? limit.rlim_cur : kMost);
}

int64_t virtual_bytes() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace

ProcessUsage process_usage() {
  static const double kStart = start_time();
  return {.cpu_seconds = cpu_seconds(),
          .start_time = kStart,
          .resident_bytes = resident_memory(),
          .virtual_bytes = virtual_bytes(),
          .open_files = open_files(),
          .max_files = max_files()};
}

}  // namespace outrider
