// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/subword_model.h"

#include <algorithm>
#include <cstdio>

namespace outrider {

void SubwordModel::find_byte_pieces(const PieceIds& piece_ids) {
  for (int byte = 0; byte < 256; ++byte) {
    char piece[8];
    std::snprintf(piece, sizeof piece, "<0x%02X>", static_cast<unsigned>(byte));
    const auto found = piece_ids.find(piece);
    if (found != piece_ids.end()) byte_ids_[byte] = found->second;
  }
}

bool SubwordModel::has_byte_pieces(std::string_view bytes) const {
  return std::all_of(bytes.begin(), bytes.end(),
                     [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)] != kNoPiece; });
}

void SubwordModel::encode_byte(unsigned char byte, std::vector<TokenId>& tokens) const {
  if (byte_ids_[byte] != kNoPiece) {
    tokens.push_back(byte_ids_[byte]);
  } else if (unknown_) {
    tokens.push_back(*unknown_);
  }
}

}  // namespace outrider
