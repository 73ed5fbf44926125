// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/gguf/gguf.h"
#include "tensor/tensor_view.h"

namespace outrider {

// The metadata of a GGUF file to be written. Setting a key again replaces its value.
class GgufMetadataWriter {
 public:
  void set_u32(std::string key, int64_t value);
  void set_f32(std::string key, double value);
  void set_bool(std::string key, bool value);
  void set_string(std::string key, std::string_view value);
  void set_strings(std::string key, std::span<const std::string> values);
  void set_floats(std::string key, std::span<const float> values);
  void set_integers(std::string key, std::span<const int32_t> values);
  void copy(std::string key, const GgufValue& value);

  size_t size() const { return values_.size(); }
  // The keys with their types and values as bytes of the file, in the order of keys.
  std::string serialize() const;

 private:
  std::map<std::string, std::string> values_;  // type and value as in the file
};

struct GgufTensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // outermost first

  int64_t bytes() const { return TensorView{dtype, shape, nullptr}.bytes(); }
};

// The bytes of a GGUF v3 file before its tensor data. The data follow in the order of `tensors`, each tensor
// with gguf_padding() zeros after it.
std::string gguf_header(const GgufMetadataWriter& metadata, std::span<const GgufTensorInfo> tensors);

// The number of zeros between `bytes` bytes and the next multiple of the alignment, 32.
int64_t gguf_padding(int64_t bytes);

}  // namespace outrider
