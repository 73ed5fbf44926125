// SPDX-License-Identifier: Apache-2.0
// The GGUF container, versions 2 and 3, little-endian, as described in ggml's docs/gguf.md:
//   "GGUF" | u32 version | u64 tensor count | u64 key count | keys | tensor descriptions | padding | data
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"
#include "tensor/tensor_view.h"

namespace outrider {

enum class GgufType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// One metadata value, in the bytes of the file. The parser has walked all of it, so reading it can fail only
// for a wrong type.
class GgufValue {
 public:
  GgufValue(GgufType type, uint64_t count, bool is_array, std::span<const std::byte> payload)
      : type_(type), is_array_(is_array), count_(count), payload_(payload) {}

  // The type of the value, or of the elements of an array.
  GgufType type() const { return type_; }
  bool is_array() const { return is_array_; }
  uint64_t count() const { return count_; }
  // The bytes of the value in the file, without its type and count.
  std::span<const std::byte> payload() const { return payload_; }

  // Scalars. nullopt: another type, or (integer) a number that does not fit int64_t.
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;  // any numeric type
  std::optional<bool> boolean() const;
  std::optional<std::string_view> string() const;

  // Arrays. nullopt: another type. integers() takes every integer type, floats() f32 only.
  std::optional<std::vector<std::string_view>> strings() const;
  std::optional<std::vector<int64_t>> integers() const;
  std::optional<std::vector<bool>> booleans() const;
  std::optional<std::vector<float>> floats() const;

  // A short form for people: a number, a string cut to 80 bytes, or "array of 32000 string".
  std::string printable() const;

 private:
  GgufType type_;
  bool is_array_;
  uint64_t count_;  // 1 for scalars
  std::span<const std::byte> payload_;
};

// A tensor of type I64, little-endian and of any alignment.
struct GgufIntegers {
  Shape shape;  // outermost first
  const std::byte* data = nullptr;
};

struct GgufFile {
  std::map<std::string, GgufValue, std::less<>> metadata;
  // Shapes outermost first (GGUF stores them innermost first); names as in the file ("blk.0.attn_q.weight").
  std::map<std::string, TensorView, std::less<>> tensors;
  std::map<std::string, GgufIntegers, std::less<>> integers;

  const GgufValue* find(std::string_view key) const;
};

// Parses a whole file; everything returned points into `bytes`. `name` is for messages. Memory is linear in
// the number of keys and tensors that are there, whatever counts the file claims.
//
// Errors: wrong magic, version or byte order; more keys or tensors than the limits (65,536 each) or than fit
// the file. Strings, arrays or tensors that leave the file; unknown types (named, with what is supported).
// Alignment that is no power of two up to 1 MiB; duplicate names; misaligned or overlapping tensors.
Result<GgufFile> parse_gguf(std::span<const std::byte> bytes, std::string_view name);

// The number of a type in tensor descriptions. Precondition: files can hold the type.
uint32_t gguf_tensor_type(DType dtype);

}  // namespace outrider
