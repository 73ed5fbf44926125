// SPDX-License-Identifier: Apache-2.0
// A config.json, a NUL and a safetensors file -> quantised matrices, of which every row is read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/hf/safetensors.h"
#include "formats/json_file.h"
#include "formats/quantized/quantization.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;  // NOLINT: one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(text.find('\0'), size);
  const auto config = JsonFile::parse(text.substr(0, end), "config.json");
  if (!config.ok()) return 0;
  const auto quantization = read_quantization(config->root());
  if (!quantization.ok() || end == size) return 0;
  const auto file = parse_safetensors(std::as_bytes(std::span(text.substr(end + 1))), "input");
  if (!file.ok()) return 0;
  std::vector<std::unique_ptr<const RowSource>> sources;
  for (const char* name : {"m.weight", "m"}) {
    const auto view = find_quantized({file->tensors, *quantization, "input", sources}, name);
    std::vector<std::byte> made;
    if (!view.ok() || !view->has_value()) continue;
    for (int64_t row = 0; row < (*view)->rows(); ++row) (*view)->row(row, made);
  }
  return 0;
}
