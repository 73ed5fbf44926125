// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/byte_mapping.h"

#include <array>

#include "base/utf8.h"

namespace outrider {
namespace {

constexpr uint32_t kFirstShifted = 0x100;
constexpr uint32_t kMappedEnd = 0x144;  // one past the last code point in use

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

struct Tables {
  std::array<uint32_t, 256> code_point{};
  std::array<int, kMappedEnd> byte{};  // -1: spells no byte
};

constexpr Tables make_tables() {
  Tables tables;
  for (int& byte : tables.byte) byte = -1;
  uint32_t next = kFirstShifted;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const uint32_t code_point = stands_for_itself(byte) ? byte : next++;
    tables.code_point[byte] = code_point;
    tables.byte[code_point] = static_cast<int>(byte);
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t mapped_code_point(unsigned char byte) { return kTables.code_point[byte]; }

std::string map_bytes(std::string_view bytes) {
  std::string mapped;
  mapped.reserve(bytes.size() + bytes.size() / 4);
  for (const char byte : bytes) utf8::append(mapped_code_point(static_cast<unsigned char>(byte)), mapped);
  return mapped;
}

std::optional<std::string> unmap_bytes(std::string_view mapped) {
  std::string bytes;
  bytes.reserve(mapped.size());
  while (!mapped.empty()) {
    const utf8::CodePoint character = utf8::decode(mapped);
    if (character.length == 0 || character.value >= kMappedEnd || kTables.byte[character.value] < 0) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(kTables.byte[character.value]));
    mapped.remove_prefix(character.length);
  }
  return bytes;
}

}  // namespace outrider
