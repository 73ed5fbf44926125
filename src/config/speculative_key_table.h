// SPDX-License-Identifier: Apache-2.0
// The one table of speculative_config keys and how each is read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/option_member.h"
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
  Member<SpeculativeConfig> member;
  std::string_view help;
  NumberRange range = {};               // of numbers, and of each item of a list
  std::string_view usual_default = {};  // where another place decides about the default: how it is described

  bool belongs_to(Method method) const { return (methods >> static_cast<unsigned>(method) & 1) != 0; }
  std::string default_text() const;  // as it would be given; empty: none
  // "HELP, 1 to 64"
  std::string meaning() const;
  // Errors say what was expected, without the name of the key.
  Status assign(SpeculativeConfig& config, const std::string& text) const;
};

// decoding_type comes first.
std::span<const SpeculativeKey> speculative_key_table();

// "all", or the names of the methods that a key belongs to.
std::string methods_of(const SpeculativeKey& key);

// Error: a number of a key that belongs to `method`, and not to all, is outside the range of its row.
Status check_method_options(const SpeculativeOptions& options, Method method);

}  // namespace outrider
