// SPDX-License-Identifier: Apache-2.0
// The one table of speculative_config keys and how each is read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"
#include "outrider/speculative_options.h"

namespace outrider {

struct SpeculativeConfig {
  SpeculativeOptions options;
  std::vector<std::string> warnings;  // one line for each key that was read but has no effect here
  bool with_suffix = false;           // the method shares its trees with Suffix
};

struct SpeculativeKey {
  std::string_view name;
  uint32_t methods = 0;  // bit m: the key belongs to the method of that number
  std::string_view default_text;
  std::string_view help;
  Status (*assign)(SpeculativeConfig& config, std::string_view text) = nullptr;

  bool belongs_to(Method method) const { return (methods >> static_cast<unsigned>(method) & 1) != 0; }
};

// decoding_type comes first.
std::span<const SpeculativeKey> speculative_key_table();

// "all", or the names of the methods that a key belongs to.
std::string methods_of(const SpeculativeKey& key);

}  // namespace outrider
