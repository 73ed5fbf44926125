// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <concepts>
#include <cstring>
#include <limits>
#include <sstream>

#include "base/quote.h"
#include "formats/gguf/gguf.h"

namespace outrider {
namespace {

template <typename T>
T load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

bool is_integer(GgufType type) {
  return type != GgufType::kFloat32 && type != GgufType::kFloat64 && type != GgufType::kBool &&
         type != GgufType::kString && type != GgufType::kArray;
}

size_t integer_bytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
      return 4;
    default:
      return 8;
  }
}

// Precondition: is_integer(type).
std::optional<int64_t> load_integer(GgufType type, const std::byte* data) {
  switch (type) {
    case GgufType::kUint8:
      return load<uint8_t>(data);
    case GgufType::kInt8:
      return load<int8_t>(data);
    case GgufType::kUint16:
      return load<uint16_t>(data);
    case GgufType::kInt16:
      return load<int16_t>(data);
    case GgufType::kUint32:
      return load<uint32_t>(data);
    case GgufType::kInt32:
      return load<int32_t>(data);
    case GgufType::kUint64: {
      const auto value = load<uint64_t>(data);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return load<int64_t>(data);
  }
}

std::string_view load_string(const std::byte* data) {
  return {reinterpret_cast<const char*>(data) + sizeof(uint64_t), load<uint64_t>(data)};
}

std::string_view type_name(GgufType type) {
  constexpr std::array<std::string_view, 13> kNames = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                       "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<size_t>(type)];
}

}  // namespace

std::optional<int64_t> GgufValue::integer() const {
  if (is_array_ || !is_integer(type_)) return std::nullopt;
  return load_integer(type_, payload_.data());
}

std::optional<double> GgufValue::number() const {
  if (is_array_) return std::nullopt;
  if (type_ == GgufType::kFloat32) return load<float>(payload_.data());
  if (type_ == GgufType::kFloat64) return load<double>(payload_.data());
  const auto value = integer();
  return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}

std::optional<bool> GgufValue::boolean() const {
  if (is_array_ || type_ != GgufType::kBool) return std::nullopt;
  return payload_[0] != std::byte{0};
}

std::optional<std::string_view> GgufValue::string() const {
  if (is_array_ || type_ != GgufType::kString) return std::nullopt;
  return load_string(payload_.data());
}

std::optional<std::vector<std::string_view>> GgufValue::strings() const {
  if (!is_array_ || type_ != GgufType::kString) return std::nullopt;
  std::vector<std::string_view> result;
  result.reserve(count_);
  for (const std::byte* next = payload_.data(); result.size() < count_;) {
    result.push_back(load_string(next));
    next += sizeof(uint64_t) + result.back().size();
  }
  return result;
}

std::optional<std::vector<int64_t>> GgufValue::integers() const {
  if (!is_array_ || !is_integer(type_)) return std::nullopt;
  std::vector<int64_t> result(count_);
  for (uint64_t i = 0; i < count_; ++i) {
    const auto value = load_integer(type_, payload_.data() + i * integer_bytes(type_));
    if (!value) return std::nullopt;
    result[i] = *value;
  }
  return result;
}

std::optional<std::vector<bool>> GgufValue::booleans() const {
  if (!is_array_ || type_ != GgufType::kBool) return std::nullopt;
  std::vector<bool> result(count_);
  for (uint64_t i = 0; i < count_; ++i) result[i] = payload_[i] != std::byte{0};
  return result;
}

std::optional<std::vector<float>> GgufValue::floats() const {
  if (!is_array_ || type_ != GgufType::kFloat32) return std::nullopt;
  std::vector<float> result(count_);
  if (count_ > 0) std::memcpy(result.data(), payload_.data(), count_ * sizeof(float));
  return result;
}

std::string GgufValue::printable() const {
  if (is_array_) return "array of " + std::to_string(count_) + " " + std::string(type_name(type_));
  if (const auto text = string()) return outrider::printable(*text);
  if (const auto flag = boolean()) return *flag ? "true" : "false";
  if (type_ == GgufType::kUint64) return std::to_string(load<uint64_t>(payload_.data()));
  if (const auto whole = integer()) return std::to_string(*whole);
  std::ostringstream out;
  out << number().value_or(0.0);
  return out.str();
}

}  // namespace outrider
