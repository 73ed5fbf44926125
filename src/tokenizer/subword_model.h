// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "outrider/token.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

using PieceIds = std::unordered_map<std::string_view, TokenId>;

// Cuts words into pieces of the vocabulary. Immutable; threads may share it.
class SubwordModel {
 public:
  virtual ~SubwordModel() = default;

  // Appends the tokens of every word. Words are bytes for kByteLevelBpe, and valid UTF-8 with U+2581 for
  // spaces for the other kinds.
  virtual void encode_words(const std::vector<std::string_view>& words,
                            std::vector<TokenId>& tokens) const = 0;

  // Appends a byte that is part of no valid character: as its piece, else as the unknown token, else as
  // nothing.
  void encode_byte(unsigned char byte, std::vector<TokenId>& tokens) const;

 protected:
  static constexpr TokenId kNoPiece = -1;

  explicit SubwordModel(std::optional<TokenId> unknown) : unknown_(unknown) { byte_ids_.fill(kNoPiece); }

  // Takes the pieces "<0x00>" to "<0xFF>" of the vocabulary for bytes.
  void find_byte_pieces(const PieceIds& piece_ids);
  // Whether every one of these bytes has a piece.
  bool has_byte_pieces(std::string_view bytes) const;

  std::optional<TokenId> unknown_;
  std::array<TokenId, 256> byte_ids_{};  // piece of a single byte, or kNoPiece
};

}  // namespace outrider
