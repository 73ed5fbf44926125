// SPDX-License-Identifier: Apache-2.0
#include "server/calls/random_id.h"

#include <fmt/format.h>

#include <random>

namespace outrider {

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

uint64_t random_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 31 | device()) >> 1;
}

}  // namespace outrider
