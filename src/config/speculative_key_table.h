// SPDX-License-Identifier: Apache-2.0
// The one table of speculative_config keys and how each is read.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/speculative_config.h"

namespace outrider {

struct SpeculativeKeyRow {
  SpeculativeKey key;
  Status (*assign)(SpeculativeConfig& config, std::string_view text) = nullptr;
};

// decoding_type comes first.
std::span<const SpeculativeKeyRow> speculative_key_table();

// "None, NGram, ..." for messages.
std::string speculative_methods();

}  // namespace outrider
