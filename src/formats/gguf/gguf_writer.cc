// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_writer.h"

#include <bit>
#include <cstring>

namespace outrider {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is written as memory has it");

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kVersion = 3;
constexpr int64_t kAlignment = 32;  // bytes; the format's default, which files need not state

template <typename T>
void append(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void append(std::string& out, GgufType type) { append(out, static_cast<uint32_t>(type)); }

void append_text(std::string& out, std::string_view text) {
  append(out, static_cast<uint64_t>(text.size()));
  out += text;
}

template <typename T>
std::string scalar(GgufType type, T value) {
  std::string out;
  append(out, type);
  append(out, value);
  return out;
}

std::string array_start(GgufType element, uint64_t count) {
  std::string out;
  append(out, GgufType::kArray);
  append(out, element);
  append(out, count);
  return out;
}

template <typename T>
std::string numbers(GgufType element, std::span<const T> values) {
  std::string out = array_start(element, values.size());
  for (const T value : values) append(out, value);
  return out;
}

}  // namespace

void GgufMetadataWriter::set_u32(std::string key, int64_t value) {
  values_[std::move(key)] = scalar(GgufType::kUint32, static_cast<uint32_t>(value));
}

void GgufMetadataWriter::set_f32(std::string key, double value) {
  values_[std::move(key)] = scalar(GgufType::kFloat32, static_cast<float>(value));
}

void GgufMetadataWriter::set_bool(std::string key, bool value) {
  values_[std::move(key)] = scalar(GgufType::kBool, static_cast<uint8_t>(value ? 1 : 0));
}

void GgufMetadataWriter::set_string(std::string key, std::string_view value) {
  std::string out;
  append(out, GgufType::kString);
  append_text(out, value);
  values_[std::move(key)] = std::move(out);
}

void GgufMetadataWriter::set_strings(std::string key, std::span<const std::string> values) {
  std::string out = array_start(GgufType::kString, values.size());
  for (const std::string& value : values) append_text(out, value);
  values_[std::move(key)] = std::move(out);
}

void GgufMetadataWriter::set_floats(std::string key, std::span<const float> values) {
  values_[std::move(key)] = numbers(GgufType::kFloat32, values);
}

void GgufMetadataWriter::set_integers(std::string key, std::span<const int32_t> values) {
  values_[std::move(key)] = numbers(GgufType::kInt32, values);
}

void GgufMetadataWriter::copy(std::string key, const GgufValue& value) {
  std::string out;
  if (value.is_array()) {
    out = array_start(value.type(), value.count());
  } else {
    append(out, value.type());
  }
  out.append(reinterpret_cast<const char*>(value.payload().data()), value.payload().size());
  values_[std::move(key)] = std::move(out);
}

std::string GgufMetadataWriter::serialize() const {
  std::string out;
  for (const auto& [key, value] : values_) {
    append_text(out, key);
    out += value;
  }
  return out;
}

std::string gguf_header(const GgufMetadataWriter& metadata, std::span<const GgufTensorInfo> tensors) {
  std::string out;
  append(out, kMagic);
  append(out, kVersion);
  append(out, static_cast<uint64_t>(tensors.size()));
  append(out, static_cast<uint64_t>(metadata.size()));
  out += metadata.serialize();
  int64_t offset = 0;
  for (const GgufTensorInfo& tensor : tensors) {
    append_text(out, tensor.name);
    append(out, static_cast<uint32_t>(tensor.shape.size()));
    for (auto dimension = tensor.shape.rbegin(); dimension != tensor.shape.rend(); ++dimension) {
      append(out, static_cast<uint64_t>(*dimension));
    }
    append(out, gguf_tensor_type(tensor.dtype));
    append(out, static_cast<uint64_t>(offset));
    offset += tensor.bytes() + gguf_padding(tensor.bytes());
  }
  out.append(static_cast<size_t>(gguf_padding(static_cast<int64_t>(out.size()))), '\0');
  return out;
}

int64_t gguf_padding(int64_t bytes) { return (kAlignment - bytes % kAlignment) % kAlignment; }

}  // namespace outrider
