// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer_pieces.h"

#include <charconv>
#include <optional>

#include "tokenizer/byte_mapping.h"

namespace outrider {
namespace {

// The byte that a "<0xNN>" piece names.
std::optional<char> fallback_byte(std::string_view piece) {
  constexpr size_t kPieceBytes = 6;
  if (piece.size() != kPieceBytes || !piece.starts_with("<0x") || !piece.ends_with('>')) return std::nullopt;
  unsigned value = 0;
  const char* const end = piece.data() + kPieceBytes - 1;
  const auto [stop, error] = std::from_chars(piece.data() + 3, end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return static_cast<char>(value);
}

std::string unmark_spaces(std::string_view piece) {
  std::string text;
  text.reserve(piece.size());
  while (!piece.empty()) {
    const size_t mark = piece.find(kSpaceMark);
    text += piece.substr(0, mark);
    if (mark == std::string_view::npos) break;
    text += ' ';
    piece.remove_prefix(mark + kSpaceMark.size());
  }
  return text;
}

std::string bytes_of(const TokenizerSpec& spec, size_t id) {
  const std::string& piece = spec.pieces[id];
  const TokenAttribute attribute = spec.attributes[id];
  if (spec.kind == TokenizerKind::kByteLevelBpe) {
    if (attribute == TokenAttribute::kUserDefined || is_special(attribute)) return piece;
    return unmap_bytes(piece).value_or(piece);
  }
  if (spec.byte_fallback && attribute != TokenAttribute::kUserDefined) {
    if (const auto byte = fallback_byte(piece)) return std::string(1, *byte);
  }
  return unmark_spaces(piece);
}

}  // namespace

std::string mark_spaces(std::string_view text) {
  std::string marked;
  marked.reserve(text.size() + text.size() / 2);
  for (const char byte : text) {
    if (byte == ' ') {
      marked += kSpaceMark;
    } else {
      marked += byte;
    }
  }
  return marked;
}

std::vector<std::string> bytes_of_pieces(const TokenizerSpec& spec) {
  std::vector<std::string> bytes;
  bytes.reserve(spec.pieces.size());
  for (size_t id = 0; id < spec.pieces.size(); ++id) bytes.push_back(bytes_of(spec, id));
  return bytes;
}

}  // namespace outrider
