// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace outrider {

std::string random_id();  // 32 hexadecimal digits
uint64_t random_seed();   // below 2^63

}  // namespace outrider
