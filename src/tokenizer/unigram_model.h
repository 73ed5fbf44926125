// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "outrider/result.h"
#include "tokenizer/subword_model.h"

namespace outrider {

// The unigram language model of Kudo (arXiv 1804.10959): every piece has a log-probability, and a word is cut
// where the sum over its pieces is greatest. Results equal Hugging Face tokenizers, ties included.
class UnigramModel final : public SubwordModel {
 public:
  // `piece_ids` has every piece of `spec`, which must outlive the model. Error: there are no scores.
  static Result<std::unique_ptr<const SubwordModel>> create(const TokenizerSpec& spec,
                                                            const PieceIds& piece_ids);

  void encode_words(const std::vector<std::string_view>& words, std::vector<TokenId>& tokens) const override;

 private:
  struct Piece {
    std::string_view text;
    TokenId id = 0;
    double score = 0;  // natural logarithm of a probability
  };

  // The best way found so far to cut the first bytes of a word: its last piece and its score.
  struct Cut {
    double score = 0;
    size_t begin = kUnreached;  // of the last piece, in bytes
    TokenId id = kNoPiece;      // kNoPiece: an unknown character

    static constexpr size_t kUnreached = SIZE_MAX;
  };

  UnigramModel(const TokenizerSpec& spec, const PieceIds& piece_ids);
  void encode_word(std::string_view word, std::vector<Cut>& cuts, std::vector<TokenId>& tokens) const;
  void extend_cuts(std::string_view word, size_t begin, std::vector<Cut>& cuts) const;
  void emit_unknown(std::string_view text, std::vector<TokenId>& tokens) const;

  std::vector<Piece> pieces_;  // all that may stand for text, sorted by their bytes
  double unknown_score_ = 0;   // of a character without a piece
};

}  // namespace outrider
