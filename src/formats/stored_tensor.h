// SPDX-License-Identifier: Apache-2.0
// The tensors of a checkpoint as its container lists them, weights and integers alike.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/tensor_view.h"

namespace outrider {

// A type of the safetensors format.
struct StoredType {
  std::string_view name;
  uint64_t bits;               // per element
  std::optional<DType> dtype;  // nullopt: a type that cannot hold weights here
};

// nullptr: there is no such type.
const StoredType* find_stored_type(std::string_view name);

// The bytes of a tensor; nullopt when they do not fit 64 bits or are no whole number.
std::optional<uint64_t> stored_bytes(const Shape& shape, uint64_t bits_per_element);

struct StoredTensor {
  std::string dtype_name;  // "BF16"
  std::optional<DType> dtype;
  Shape shape;
  std::span<const std::byte> data;  // row by row, within the bytes of the container; of any alignment
};

using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;

// Limit of the tensors of a file; bounds the memory that a small header can cost.
inline constexpr size_t kMaxStoredTensors = 65536;

}  // namespace outrider
