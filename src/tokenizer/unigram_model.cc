// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/unigram_model.h"

#include <algorithm>
#include <limits>
#include <span>

#include "base/utf8.h"

namespace outrider {
namespace {

// An unknown character is this much less likely than the least likely piece, as in SentencePiece.
constexpr double kUnknownPenalty = 10.0;

}  // namespace

UnigramModel::UnigramModel(const TokenizerSpec& spec, const PieceIds& piece_ids)
    : SubwordModel(spec.unknown) {
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < spec.scores.size(); ++id) {
    lowest = std::min(lowest, spec.scores[id]);
    const TokenAttribute attribute = spec.attributes[id];
    if (attribute != TokenAttribute::kNormal && attribute != TokenAttribute::kByte) continue;
    pieces_.push_back({spec.pieces[id], static_cast<TokenId>(id), spec.scores[id]});
  }
  unknown_score_ = lowest - kUnknownPenalty;
  std::ranges::sort(pieces_, {}, &Piece::text);
  if (spec.byte_fallback) find_byte_pieces(piece_ids);
}

Result<std::unique_ptr<const SubwordModel>> UnigramModel::create(const TokenizerSpec& spec,
                                                                 const PieceIds& piece_ids) {
  if (spec.scores.empty()) return input_error("a unigram vocabulary needs a score for every token");
  return std::unique_ptr<const SubwordModel>(new UnigramModel(spec, piece_ids));
}

void UnigramModel::encode_words(const std::vector<std::string_view>& words,
                                std::vector<TokenId>& tokens) const {
  std::vector<Cut> cuts;
  for (const std::string_view word : words) encode_word(word, cuts, tokens);
}

// Goes from left to right through the places where a character begins; a later cut wins only if it is better.
void UnigramModel::encode_word(std::string_view word, std::vector<Cut>& cuts,
                               std::vector<TokenId>& tokens) const {
  cuts.assign(word.size() + 1, Cut{});
  for (size_t begin = 0; begin < word.size();) {
    extend_cuts(word, begin, cuts);
    begin += static_cast<size_t>(utf8::decode(word.substr(begin)).length);
  }
  std::vector<size_t> ends;  // of the pieces of the best cut
  for (size_t end = word.size(); end > 0; end = cuts[end].begin) ends.push_back(end);
  std::ranges::reverse(ends);
  size_t unknown_begin = 0;
  size_t begin = 0;
  for (const size_t end : ends) {
    const TokenId id = cuts[end].id;
    if (id != kNoPiece) {
      emit_unknown(word.substr(unknown_begin, begin - unknown_begin), tokens);
      tokens.push_back(id);
      unknown_begin = end;
    }
    begin = end;
  }
  emit_unknown(word.substr(unknown_begin), tokens);
}

// Tries every piece that begins at `begin`, in order of length.
void UnigramModel::extend_cuts(std::string_view word, size_t begin, std::vector<Cut>& cuts) const {
  const auto offer = [&](size_t length, TokenId id, double score) {
    Cut& cut = cuts[begin + length];
    const double total = cuts[begin].score + score;
    if (cut.begin == Cut::kUnreached || total > cut.score) cut = {total, begin, id};
  };
  const auto character_length = static_cast<size_t>(utf8::decode(word.substr(begin)).length);
  bool has_character = false;
  std::span<const Piece> candidates = pieces_;  // the pieces that agree with the text so far
  for (size_t length = 1; begin + length <= word.size(); ++length) {
    const auto byte_at = [&](const Piece& piece) {
      return piece.text.size() < length
                 ? -1
                 : static_cast<int>(static_cast<unsigned char>(piece.text[length - 1]));
    };
    const int byte = static_cast<unsigned char>(word[begin + length - 1]);
    candidates = {std::ranges::lower_bound(candidates, byte, {}, byte_at),
                  std::ranges::upper_bound(candidates, byte, {}, byte_at)};
    if (candidates.empty()) break;
    if (candidates.front().text.size() > length) continue;
    offer(length, candidates.front().id, candidates.front().score);
    has_character = has_character || length == character_length;
  }
  if (!has_character) offer(character_length, kNoPiece, unknown_score_);
}

// A run of unknown characters is looked up as a whole, then spelled in bytes, then the unknown token.
void UnigramModel::emit_unknown(std::string_view text, std::vector<TokenId>& tokens) const {
  if (text.empty()) return;
  const auto piece = std::ranges::lower_bound(pieces_, text, {}, &Piece::text);
  if (piece != pieces_.end() && piece->text == text) {
    tokens.push_back(piece->id);
  } else if (has_byte_pieces(text)) {
    for (const char byte : text) encode_byte(static_cast<unsigned char>(byte), tokens);
  } else if (unknown_) {
    tokens.push_back(*unknown_);
  }
}

}  // namespace outrider
