// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace outrider {

// Bytes of memory that this process may use: all of the machine, or fewer in a container with a limit.
int64_t machine_memory();

// Bytes of memory that this process occupies now.
int64_t resident_memory();

// Gives the whole pages among the bytes back to the system. They then are 0, or as in the file that is mapped
// there.
void give_pages_back(std::span<const std::byte> bytes);

}  // namespace outrider
