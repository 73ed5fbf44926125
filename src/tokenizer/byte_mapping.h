// SPDX-License-Identifier: Apache-2.0
// GPT-2's spelling of bytes: printable Latin-1 stands for itself, the other 68 bytes for U+0100 onwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace outrider {

uint32_t mapped_code_point(unsigned char byte);
std::string map_bytes(std::string_view bytes);
// nullopt: a character that stands for no byte, or text that is not UTF-8.
std::optional<std::string> unmap_bytes(std::string_view mapped);

}  // namespace outrider
