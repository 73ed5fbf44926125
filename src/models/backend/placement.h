// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace outrider {

// The parts of a network that stay on this machine where a device has all others. The first layers stay, so
// that their rows go up once, and the last ones are beside the output head.
struct Placement {
  int64_t host_layers = 0;   // with their entries and states
  int64_t host_experts = 0;  // first layers whose experts stay, with or without the layer

  bool operator==(const Placement&) const = default;
  bool is_split() const { return host_layers > 0 || host_experts > 0; }
};

}  // namespace outrider
