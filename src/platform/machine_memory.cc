// SPDX-License-Identifier: Apache-2.0
#include "platform/machine_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/check.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// `group` is a path below `mount`. A container may see its own group at the mount, while the group's name is
// the one outside; folders that are not there have no limit.
int64_t smallest_limit(const fs::path& mount, fs::path group, const char* file) {
  int64_t smallest = 0;
  for (group = group.relative_path();; group = group.parent_path()) {
    int64_t limit = 0;  // the file says "max" where there is no limit
    if (std::ifstream(mount / group / file) >> limit && limit > 0)
      smallest = smallest == 0 ? limit : std::min(smallest, limit);
    if (group.empty()) return smallest;
  }
}

}  // namespace

int64_t machine_memory() {
  const int64_t installed = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const int64_t limit = control_group_limit();
  return limit == 0 ? installed : std::min(installed, limit);
}

int64_t available_memory(const fs::path& root) {
  int64_t available = static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  std::ifstream counts(root / "proc/meminfo");
  for (std::string name, unit; counts >> name;) {
    int64_t kilobytes = 0;
    counts >> kilobytes;
    std::getline(counts, unit);
    if (name == "MemAvailable:") available = 1024 * kilobytes;
  }
  const int64_t limit = control_group_limit(root);
  return limit == 0 ? available : std::clamp<int64_t>(limit - resident_memory(), 0, available);
}

int64_t control_group_limit(const fs::path& root) {
  const fs::path mount = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  int64_t smallest = smallest_limit(mount, "", "memory.max");
  for (std::string line; std::getline(groups, line);) {
    const size_t controllers = line.find(':') + 1, path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string names = line.substr(controllers, path - 1 - controllers);
    int64_t limit = 0;
    if (names.empty()) limit = smallest_limit(mount, line.substr(path), "memory.max");
    if (names == "memory")
      limit = smallest_limit(mount / "memory", line.substr(path), "memory.limit_in_bytes");
    if (limit > 0) smallest = smallest == 0 ? limit : std::min(smallest, limit);
  }
  return smallest;
}

int64_t resident_memory() { return resident_memory(getpid()); }

int64_t resident_memory(pid_t process) {
  int64_t all = 0;
  int64_t resident = 0;  // pages
  std::ifstream("/proc/" + std::to_string(process) + "/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void give_freed_memory_back() { malloc_trim(0); }

void give_pages_back(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (begin + page - 1) / page * page, end = (begin + bytes.size()) / page * page;
  if (first < end) OUTRIDER_CHECK(madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED) == 0);
}

}  // namespace outrider
