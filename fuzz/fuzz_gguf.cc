// SPDX-License-Identifier: Apache-2.0
// GGUF bytes -> container -> every value printed -> tokenizer -> configuration.
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_config.h"
#include "formats/gguf/gguf_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;  // NOLINT: one function
  const auto file = parse_gguf({reinterpret_cast<const std::byte*>(data), size}, "input");
  if (!file.ok()) return 0;
  for (const auto& [key, value] : file->metadata) {
    if (value.printable().empty() && value.string() != "") __builtin_trap();
  }
  unsigned checksum = 0;
  for (const auto& [name, tensor] : file->tensors) {
    for (int64_t i = 0; i < tensor.bytes(); i += 64) checksum += static_cast<unsigned>(tensor.data[i]);
  }
  volatile unsigned sink = checksum;  // the reads above must not be optimised away
  (void)sink;
  const auto tokenizer = gguf_tokenizer_spec(*file, "input");
  if (!tokenizer.ok()) return 0;
  const auto config = gguf_model_config(*file, *tokenizer, "input");
  if (config.ok() && !validate(*config).ok()) __builtin_trap();
  return 0;
}
