// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer_check.h"

#include <cmath>
#include <limits>

#include "base/quote.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer_pieces.h"

namespace outrider {
namespace {

constexpr size_t kMaxPieceBytes = 64 * 1024;
constexpr size_t kMaxAddedTokenBytes = 4096;  // bounds the cost of searching for it at every place of a text

Status check_size(const char* what, size_t size, size_t vocabulary) {
  if (size == vocabulary) return {};
  return input_error("the vocabulary has " + std::to_string(vocabulary) + " tokens but " +
                     std::to_string(size) + " " + what + "; expected one for each token");
}

Status check_id(const char* what, TokenId id, size_t vocabulary) {
  if (id >= 0 && static_cast<size_t>(id) < vocabulary) return {};
  return input_error(std::string(what) + " is token " + std::to_string(id) +
                     ", outside of the vocabulary of " + std::to_string(vocabulary));
}

Status check_piece(size_t id, std::string_view piece, TokenAttribute attribute) {
  const std::string name = "token " + std::to_string(id);
  if (piece.empty() && attribute != TokenAttribute::kUnused) return input_error(name + " is empty");
  if (piece.size() > kMaxPieceBytes) {
    return input_error(name + " has " + std::to_string(piece.size()) + " bytes, at most " +
                       std::to_string(kMaxPieceBytes) + " are supported");
  }
  if (utf8::valid_prefix(piece) != piece.size()) return input_error(name + " is not valid UTF-8");
  return {};
}

Status check_scores(const TokenizerSpec& spec) {
  if (spec.scores.empty()) return {};
  OUTRIDER_RETURN_IF_ERROR(check_size("scores", spec.scores.size(), spec.pieces.size()));
  for (size_t id = 0; id < spec.scores.size(); ++id) {
    if (std::isnan(spec.scores[id]))
      return input_error("the score of token " + std::to_string(id) + " is not a number");
  }
  return {};
}

Status check_ids(const TokenizerSpec& spec) {
  const size_t vocabulary = spec.pieces.size();
  if (spec.bos) OUTRIDER_RETURN_IF_ERROR(check_id("BOS", *spec.bos, vocabulary));
  if (spec.eos) OUTRIDER_RETURN_IF_ERROR(check_id("EOS", *spec.eos, vocabulary));
  if (spec.unknown) OUTRIDER_RETURN_IF_ERROR(check_id("the unknown token", *spec.unknown, vocabulary));
  if (spec.pad) OUTRIDER_RETURN_IF_ERROR(check_id("the padding token", *spec.pad, vocabulary));
  for (const TokenId id : spec.prefix)
    OUTRIDER_RETURN_IF_ERROR(check_id("the prefix of texts", id, vocabulary));
  for (const TokenId id : spec.suffix)
    OUTRIDER_RETURN_IF_ERROR(check_id("the suffix of texts", id, vocabulary));
  if (spec.add_bos && !spec.bos) return input_error("BOS is to be added, but there is no BOS token");
  if (spec.add_eos && !spec.eos) return input_error("EOS is to be added, but there is no EOS token");
  return {};
}

Status check_added_tokens(const TokenizerSpec& spec) {
  for (const AddedToken& token : spec.added_tokens) {
    OUTRIDER_RETURN_IF_ERROR(check_id("an added token", token.id, spec.pieces.size()));
    const size_t bytes = spec.pieces[token.id].size();
    if (bytes == 0) return input_error("added token " + std::to_string(token.id) + " is empty");
    if (bytes > kMaxAddedTokenBytes) {
      return input_error("added token " + std::to_string(token.id) + " has " + std::to_string(bytes) +
                         " bytes, at most " + std::to_string(kMaxAddedTokenBytes) + " are supported");
    }
  }
  return {};
}

void derive_added_tokens(TokenizerSpec& spec) {
  for (size_t id = 0; id < spec.pieces.size(); ++id) {
    const TokenAttribute attribute = spec.attributes[id];
    if (is_special(attribute) || attribute == TokenAttribute::kUserDefined) {
      spec.added_tokens.push_back({.id = static_cast<TokenId>(id)});
    }
  }
}

}  // namespace

Status complete_and_check(TokenizerSpec& spec) {
  const size_t vocabulary = spec.pieces.size();
  if (vocabulary == 0) return input_error("the vocabulary is empty");
  if (vocabulary > static_cast<size_t>(std::numeric_limits<TokenId>::max())) {
    return input_error("the vocabulary has " + std::to_string(vocabulary) +
                       " tokens, at most 2^31 - 1 are supported");
  }
  if (spec.attributes.empty()) spec.attributes.assign(vocabulary, TokenAttribute::kNormal);
  OUTRIDER_RETURN_IF_ERROR(check_size("attributes", spec.attributes.size(), vocabulary));
  OUTRIDER_RETURN_IF_ERROR(check_scores(spec));
  for (size_t id = 0; id < vocabulary; ++id)
    OUTRIDER_RETURN_IF_ERROR(check_piece(id, spec.pieces[id], spec.attributes[id]));
  OUTRIDER_RETURN_IF_ERROR(check_ids(spec));
  if (spec.added_tokens.empty()) derive_added_tokens(spec);
  OUTRIDER_RETURN_IF_ERROR(check_added_tokens(spec));
  if (spec.kind != TokenizerKind::kByteLevelBpe) {
    for (const SplitRule& rule : spec.split_patterns) {
      if (rule.on_mapped_bytes)
        return input_error("only a byte-level vocabulary can have a split rule on mapped bytes");
    }
  }
  return {};
}

Result<PieceIds> index_pieces(const TokenizerSpec& spec) {
  PieceIds ids;
  ids.reserve(spec.pieces.size());
  for (size_t id = 0; id < spec.pieces.size(); ++id) {
    if (spec.pieces[id].empty()) continue;
    const auto [existing, is_new] = ids.emplace(spec.pieces[id], static_cast<TokenId>(id));
    if (!is_new) {
      return input_error("tokens " + std::to_string(existing->second) + " and " + std::to_string(id) +
                         " are both spelled " + quote(spec.pieces[id]) + "; expected distinct tokens");
    }
  }
  return ids;
}

}  // namespace outrider
