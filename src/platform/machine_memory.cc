// SPDX-License-Identifier: Apache-2.0
#include "platform/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace outrider {

int64_t machine_memory() {
  const int64_t installed = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  int64_t limit = 0;
  // A container sees its own control group at the root; the file says "max" where there is no limit.
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit && limit > 0) return std::min(installed, limit);
  return installed;
}

}  // namespace outrider
