// SPDX-License-Identifier: Apache-2.0
#include "platform/machine_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/check.h"

namespace outrider {

int64_t machine_memory() {
  const int64_t installed = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  int64_t limit = 0;
  // A container sees its own control group at the root; the file says "max" where there is no limit.
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit && limit > 0) return std::min(installed, limit);
  return installed;
}

int64_t resident_memory() {
  int64_t all = 0;
  int64_t resident = 0;  // pages
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void give_pages_back(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (begin + page - 1) / page * page, end = (begin + bytes.size()) / page * page;
  if (first < end) OUTRIDER_CHECK(madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED) == 0);
}

}  // namespace outrider
