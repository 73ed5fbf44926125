// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace outrider {

// Bytes of memory that this process may use: all of the machine, or fewer in a container with a limit.
int64_t machine_memory();

// Bytes of memory that this process occupies now.
int64_t resident_memory();

}  // namespace outrider
