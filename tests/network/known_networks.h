// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "tests/network/shaped_proxy.h"

namespace outrider {

struct KnownNetwork {
  std::string_view name;
  NetworkShape shape;
};

// The networks of Mixture of Attentions (arXiv 2410.03804).
std::span<const KnownNetwork> known_networks();

// nullopt: there is none of this name.
std::optional<NetworkShape> find_network(std::string_view name);

}  // namespace outrider
