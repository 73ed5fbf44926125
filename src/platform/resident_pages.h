// SPDX-License-Identifier: Apache-2.0
// For tests of what is in memory.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace outrider {

// The whole pages among the bytes that are in memory.
inline int64_t resident_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  int64_t resident = 0;
  for (uintptr_t at = (begin + page - 1) / page * page; at + page <= begin + bytes.size(); at += page) {
    unsigned char state = 0;
    const bool is_known = mincore(reinterpret_cast<void*>(at), page, &state) == 0;
    resident += static_cast<int64_t>(is_known && (state & 1) != 0);
  }
  return resident;
}

}  // namespace outrider
