// SPDX-License-Identifier: Apache-2.0
// Any text given to --speculative as inline keys, JSON or YAML is accepted or refused in one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/speculative_config.h"

namespace {

void require_one_line(const outrider::Result<outrider::SpeculativeConfig>& result) {
  if (!result.ok() && result.error().message.find('\n') != std::string::npos) std::abort();
}

// A name that ends in .yaml would be opened.
bool names_file(std::string_view text) {
  return text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".json");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (!names_file(text)) require_one_line(outrider::parse_speculative(text));
  const auto tree = outrider::parse_config(text, "fuzz.yaml");
  if (tree.ok()) {
    const auto given = outrider::read_speculation(*tree, "fuzz.yaml");
    if (given.ok()) require_one_line(outrider::assemble_speculation(*given));
  } else if (tree.error().message.find('\n') != std::string::npos) {
    std::abort();
  }
  return 0;
}
