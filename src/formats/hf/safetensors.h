// SPDX-License-Identifier: Apache-2.0
// The safetensors container: u64 header length | JSON header | data, as described in huggingface/safetensors.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "formats/stored_tensor.h"
#include "outrider/result.h"

namespace outrider {

struct SafetensorsFile {
  StoredTensors tensors;
  std::map<std::string, std::string, std::less<>> metadata;
};

// Parses a whole file; `name` is for messages. Tensors of every type of the format are listed, so that a file
// may hold integers beside its weights.
//
// Errors: a header longer than 100,000,000 bytes or than the file, or not a flat JSON object of the format;
// duplicate names, unknown types. Shapes that do not match their extent, and extents that leave holes,
// overlap, or do not end with the file.
Result<SafetensorsFile> parse_safetensors(std::span<const std::byte> bytes, std::string_view name);

}  // namespace outrider
