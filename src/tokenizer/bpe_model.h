// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "outrider/result.h"
#include "outrider/token.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/subword_model.h"

namespace outrider {

// A part of a word that is one token so far.
struct BpeSymbol {
  TokenId id = 0;
  int32_t previous = -1;
  int32_t next = -1;
  uint32_t begin = 0;   // offset into the word, in bytes
  uint32_t length = 0;  // bytes; 0: merged into the symbol before
};

// A merge that was possible when it was found; it is void once one of its sides has changed.
struct BpeCandidate {
  double priority = 0;  // smaller goes first; ties go from left to right
  int32_t position = 0;
  TokenId merged = 0;
};

// The memory of encode_word(); each thread needs its own.
struct BpeWorkspace {
  std::vector<BpeSymbol> symbols;
  std::vector<BpeCandidate> heap;
};

// Byte-pair encoding of single words, by rank of merges or by score of the merged piece.
class BpeModel final : public SubwordModel {
 public:
  // `piece_ids` has every piece of `spec`; both must outlive the model. Error: a merge of or into text that
  // is no piece.
  static Result<std::unique_ptr<const SubwordModel>> create(const TokenizerSpec& spec,
                                                            const PieceIds& piece_ids);

  ~BpeModel() override;

  void encode_words(const std::vector<std::string_view>& words, std::vector<TokenId>& tokens) const override;

 private:
  BpeModel(const TokenizerSpec& spec, size_t merges);
  void encode_word(std::string_view word, BpeWorkspace& workspace, std::vector<TokenId>& tokens) const;
  void index_pieces();
  Status index_merges(const PieceIds& piece_ids);
  void add_symbol(TokenId id, size_t begin, size_t length, std::vector<BpeSymbol>& symbols) const;
  void split_into_bytes(std::string_view word, std::vector<BpeSymbol>& symbols) const;
  void split_into_characters(std::string_view word, std::vector<BpeSymbol>& symbols) const;
  bool append_byte_pieces(std::string_view bytes, size_t begin, std::vector<BpeSymbol>& symbols) const;
  void push_candidate(std::string_view word, int32_t position, BpeWorkspace& workspace) const;
  std::optional<BpeCandidate> find_candidate(std::string_view word, const BpeSymbol& left,
                                             const BpeSymbol& right) const;
  void merge_symbols(std::string_view word, BpeWorkspace& workspace) const;
  void emit(std::string_view word, const std::vector<BpeSymbol>& symbols, std::vector<TokenId>& tokens) const;

  class WordCaches;

  const TokenizerSpec* spec_;
  bool by_score_;
  size_t longest_piece_ = 0;        // bytes
  std::vector<std::string> words_;  // [ids] the text of each piece, in bytes if byte-level
  std::unordered_map<std::string_view, TokenId> word_ids_;  // views of words_
  MergeTable merges_;
  std::unique_ptr<WordCaches> caches_;
};

}  // namespace outrider
