// SPDX-License-Identifier: Apache-2.0
// config.json (and, after a NUL, generation_config.json) -> configuration; an accepted configuration must be
// valid.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/hf/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;  // NOLINT: one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\0');
  const auto config =
      end == text.npos ? parse_hf_config(text) : parse_hf_config(text.substr(0, end), text.substr(end + 1));
  if (config.ok() && !validate(*config).ok()) __builtin_trap();
  return 0;
}
