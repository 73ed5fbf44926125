// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace outrider {

// Bytes of memory that this process may use: all of the machine, or fewer where a control group has a limit.
int64_t machine_memory();

// Bytes of them that nothing needs now, by the files below `root`: free ones, and copies of files that the
// system would drop.
int64_t available_memory(const std::filesystem::path& root = "/");

// The smallest memory limit of this process's control group and the groups around it, in bytes, by the files
// below `root`; 0: none. Both versions of control groups are known.
int64_t control_group_limit(const std::filesystem::path& root = "/");

// Bytes of memory that this process occupies now, or another one; 0: there is no such process.
int64_t resident_memory();
int64_t resident_memory(pid_t process);

// Gives memory back to the system that was freed and that the allocator keeps.
void give_freed_memory_back();

// Gives the whole pages among the bytes back to the system. They then are 0, or as in the file that is mapped
// there.
void give_pages_back(std::span<const std::byte> bytes);

}  // namespace outrider
