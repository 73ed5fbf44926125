// SPDX-License-Identifier: Apache-2.0
#include "tests/network/frame_splitter.h"

#include <cstdint>

namespace outrider {
namespace {

constexpr unsigned kWholeBinary = 0x82;  // the last frame of a message, and its first
constexpr unsigned kMasked = 0x80;
constexpr size_t kMaskSize = 4;  // bytes before a masked payload

}  // namespace

std::string FrameSplitter::Part::message() const {
  std::string text = bytes.substr(payload);
  const bool is_masked = (static_cast<uint8_t>(bytes[1]) & kMasked) != 0;
  for (size_t i = 0; is_masked && i < text.size(); ++i)
    text[i] = static_cast<char>(text[i] ^ bytes[payload - kMaskSize + i % kMaskSize]);
  return text;
}

std::optional<FrameSplitter::Part> FrameSplitter::next() {
  if (has_header_) return next_frame();
  const size_t end = bytes_.find("\r\n\r\n");
  if (end == std::string::npos) return std::nullopt;
  has_header_ = true;
  return take(end + 4);
}

std::optional<FrameSplitter::Part> FrameSplitter::next_frame() {
  const auto byte = [this](size_t i) { return static_cast<uint8_t>(bytes_[i]); };
  if (bytes_.size() < 2) return std::nullopt;
  uint64_t size = byte(1) & 0x7f;
  const size_t more = size < 126 ? 0 : (size == 126 ? 2 : 8);  // bytes of a longer size
  size_t payload = 2 + more;
  if (bytes_.size() < payload) return std::nullopt;
  if (more > 0) size = 0;
  for (size_t i = 0; i < more; ++i) size = size << 8 | byte(2 + i);
  if ((byte(1) & kMasked) != 0) payload += kMaskSize;
  if (bytes_.size() < payload || bytes_.size() - payload < size) return std::nullopt;
  const bool is_message = byte(0) == kWholeBinary;
  Part part = take(payload + size);
  part.payload = payload;
  part.is_message = is_message;
  return part;
}

FrameSplitter::Part FrameSplitter::take(size_t size) {
  Part part{.bytes = bytes_.substr(0, size)};
  bytes_.erase(0, size);
  return part;
}

}  // namespace outrider
