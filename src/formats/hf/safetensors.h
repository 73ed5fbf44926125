// SPDX-License-Identifier: Apache-2.0
// The safetensors container: u64 header length | JSON header | data, as described in huggingface/safetensors.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "outrider/result.h"
#include "tensor/tensor_view.h"

namespace outrider {

struct SafetensorsEntry {
  std::string dtype_name;      // as in the file: "BF16"
  std::optional<DType> dtype;  // nullopt: a type of the format that cannot hold weights here
  Shape shape;
  std::span<const std::byte> data;  // within the bytes given to parse_safetensors; of any alignment
};

struct SafetensorsFile {
  std::map<std::string, SafetensorsEntry, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;
};

// Parses a whole file; `name` is for messages. Tensors of every type of the format are listed, so that a file
// may hold integers beside its weights.
//
// Errors: a header longer than 100,000,000 bytes or than the file, or not a flat JSON object of the format;
// duplicate names, unknown types, shapes that do not match their extent, and extents that leave holes,
// overlap, or do not end with the file.
Result<SafetensorsFile> parse_safetensors(std::span<const std::byte> bytes, std::string_view name);

}  // namespace outrider
