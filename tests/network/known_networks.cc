// SPDX-License-Identifier: Apache-2.0
#include "tests/network/known_networks.h"

#include <algorithm>
#include <array>

namespace outrider {
namespace {

constexpr std::array kNetworks = {
    KnownNetwork{"none", {}},
    KnownNetwork{"metro", {.round_trip_ms = 9, .bits_per_second = 50e6}},
    KnownNetwork{"5g", {.round_trip_ms = 10, .jitter_ms = 10, .loss = 0.001}},
    KnownNetwork{"4g", {.round_trip_ms = 21, .jitter_ms = 19, .bits_per_second = 20e6, .loss = 0.001}},
};

}  // namespace

std::span<const KnownNetwork> known_networks() { return kNetworks; }

std::optional<NetworkShape> find_network(std::string_view name) {
  const auto* const found = std::ranges::find(kNetworks, name, &KnownNetwork::name);
  return found == kNetworks.end() ? std::nullopt : std::optional(found->shape);
}

}  // namespace outrider
