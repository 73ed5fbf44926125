// SPDX-License-Identifier: Apache-2.0
// GPT-2's spelling of bytes: printable Latin-1 is spelled as itself, the other 68 bytes as U+0100 and up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace outrider {

uint32_t mapped_code_point(unsigned char byte);
std::string map_bytes(std::string_view bytes);
// nullopt: the text has a character that spells no byte, or is not UTF-8.
std::optional<std::string> unmap_bytes(std::string_view mapped);

}  // namespace outrider
