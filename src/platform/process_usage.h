// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace outrider {

// The time, memory and files that this process uses.
struct ProcessUsage {
  double cpu_seconds = 0;  // of all threads, user and system
  double start_time = 0;   // Unix time, seconds
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int64_t open_files = 0;
  int64_t max_files = 0;  // the soft limit
};

ProcessUsage process_usage();

}  // namespace outrider
