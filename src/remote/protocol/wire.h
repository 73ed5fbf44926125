// SPDX-License-Identifier: Apache-2.0
// Numbers as bytes: whole numbers in groups of 7 bits, low groups first (LEB128); others in little endian.
// The writer and the reader have the same functions, so that one list of fields serves both directions.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace outrider {

class WireWriter {
 public:
  static constexpr bool kReads = false;

  template <std::integral T>
  void number(const T& value) {
    auto rest = static_cast<uint64_t>(value);
    for (; rest >= 0x80; rest >>= 7) bytes_.push_back(static_cast<char>(rest | 0x80));
    bytes_.push_back(static_cast<char>(rest));
  }
  template <std::floating_point T>
  void real(const T& value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.append(raw, sizeof(T));
  }
  void bytes(std::span<const uint8_t> raw) {
    bytes_.append(reinterpret_cast<const char*>(raw.data()), raw.size());
  }
  void text(const std::string& value) {
    number(value.size());
    bytes_ += value;
  }
  // A list of `size` elements follows.
  size_t list(size_t size) {
    number(size);
    return size;
  }

  std::string take() { return std::move(bytes_); }

 private:
  static_assert(std::endian::native == std::endian::little);
  std::string bytes_;
};

// Reads untrusted bytes. After a failure all values are 0 and all lists are empty.
class WireReader {
 public:
  static constexpr bool kReads = true;

  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  // Fails where the number is not in [0, maximum of T].
  template <std::integral T>
  void number(T& value) {
    const uint64_t read = varint();
    if (read > static_cast<uint64_t>(std::numeric_limits<T>::max())) fail();
    value = is_ok_ ? static_cast<T>(read) : T();
  }
  template <std::floating_point T>
  void real(T& value) {
    value = T();
    if (const std::string_view raw = take(sizeof(T)); is_ok_) std::memcpy(&value, raw.data(), sizeof(T));
  }
  void bytes(std::span<uint8_t> raw) {
    if (const std::string_view read = take(raw.size()); is_ok_)
      std::memcpy(raw.data(), read.data(), raw.size());
  }
  void text(std::string& value) {
    const size_t size = list(0);
    value = take(size);
  }
  // The number of elements that follow. Each takes a byte or more, so memory stays within a multiple of the
  // message.
  size_t list(size_t /*size*/) {
    size_t size = 0;
    number(size);
    if (size > rest_.size()) fail();
    return is_ok_ ? size : 0;
  }

  void fail() {
    is_ok_ = false;
    rest_ = {};
  }
  bool is_ok() const { return is_ok_; }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view take(size_t size) {
    if (size > rest_.size()) fail();
    const std::string_view taken = rest_.substr(0, is_ok_ ? size : 0);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = take(1);
      if (!is_ok_) return 0;
      const auto bits = static_cast<uint64_t>(static_cast<uint8_t>(byte[0]));
      value |= (bits & 0x7f) << shift;
      if (bits < 0x80) {
        if (shift == 63 && bits > 1) fail();
        return value;
      }
    }
    fail();
    return 0;
  }

  std::string_view rest_;
  bool is_ok_ = true;
};

}  // namespace outrider
