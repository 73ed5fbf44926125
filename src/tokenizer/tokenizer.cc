// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/added_token_matcher.h"
#include "tokenizer/bpe_model.h"
#include "tokenizer/input_marks.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer_check.h"
#include "tokenizer/tokenizer_pieces.h"
#include "tokenizer/unigram_model.h"

namespace outrider {
namespace {

Result<std::unique_ptr<const SubwordModel>> create_model(const TokenizerSpec& spec,
                                                         const PieceIds& piece_ids) {
  return spec.kind == TokenizerKind::kUnigram ? UnigramModel::create(spec, piece_ids)
                                              : BpeModel::create(spec, piece_ids);
}

}  // namespace

struct Tokenizer::Impl {
  TokenizerSpec spec;
  PieceIds piece_ids;                    // views of spec.pieces
  std::vector<std::string> token_bytes;  // [ids]
  AddedTokenMatcher raw_matcher;         // tokens found before normalization
  AddedTokenMatcher normalized_matcher;  // tokens found after it
  AddedTokenMatcher control_matcher;     // control tokens of both, as spelled
  std::optional<Normalizer> normalizer;
  std::optional<PreTokenizer> pre_tokenizer;
  std::unique_ptr<const SubwordModel> model;
  std::vector<TokenId> prefix, suffix, unused;

  void index_added_tokens();
  std::string normalize(std::string_view text) const;
  void encode_valid(std::string_view text, bool at_start, const EncodeOptions& options,
                    std::vector<TokenId>& tokens) const;
  void encode_stretch(std::string_view text, bool at_start, const EncodeOptions& options,
                      std::vector<TokenId>& tokens) const;
  void encode_plain(std::string_view text, bool at_start, std::vector<TokenId>& tokens) const;
  std::string add_prefix(std::string_view text, bool at_start) const;
  bool marks_spaces() const { return spec.kind != TokenizerKind::kByteLevelBpe; }
  bool has_id(TokenId token) const { return token >= 0 && static_cast<size_t>(token) < spec.pieces.size(); }
  bool is_control(TokenId token) const { return has_id(token) && is_special(spec.attributes[token]); }
  std::string_view text_of(TokenId token, bool skip_special) const;
  bool strips_leading_space() const { return marks_spaces() && spec.add_space_prefix; }
};

void Tokenizer::Impl::index_added_tokens() {
  for (const AddedToken& token : spec.added_tokens) {
    const std::string& piece = spec.pieces[token.id];
    const bool special = is_special(spec.attributes[token.id]);
    if (special) control_matcher.add(piece, token, special);
    if (token.normalized) {
      // A token that the normalizer leaves nothing of is never found.
      if (const std::string normalized = normalize(piece); !normalized.empty()) {
        normalized_matcher.add(normalized, token, special);
      }
    } else {
      raw_matcher.add(piece, token, special);
    }
  }
}

std::string Tokenizer::Impl::normalize(std::string_view text) const {
  std::string normalized = normalizer->apply(text);
  if (!marks_spaces() || spec.space_rule != SpaceRule::kNormalizer || normalized.empty()) return normalized;
  return std::string(spec.add_space_prefix ? kSpaceMark : "").append(mark_spaces(normalized));
}

// Adds the space prefix and the space marks of the rules that apply after normalization.
std::string Tokenizer::Impl::add_prefix(std::string_view text, bool at_start) const {
  if (!marks_spaces()) return std::string(text.starts_with(' ') ? "" : " ").append(text);
  const std::string marked = mark_spaces(text);
  const bool wanted = spec.add_space_prefix && (at_start || spec.space_rule == SpaceRule::kMetaspaceAlways);
  return wanted && !marked.starts_with(kSpaceMark) ? std::string(kSpaceMark).append(marked) : marked;
}

void Tokenizer::Impl::encode_plain(std::string_view text, bool at_start, std::vector<TokenId>& tokens) const {
  const bool rewrites = marks_spaces() ? spec.space_rule != SpaceRule::kNormalizer : spec.add_space_prefix;
  const std::string rewritten = rewrites ? add_prefix(text, at_start) : std::string();
  model->encode_words(pre_tokenizer->split(rewrites ? rewritten : text), tokens);
}

// Encodes text between added tokens that are found before normalization.
void Tokenizer::Impl::encode_stretch(std::string_view text, bool at_start, const EncodeOptions& options,
                                     std::vector<TokenId>& tokens) const {
  const std::string normalized = normalize(text);
  const std::string_view view = normalized;
  for (const AddedTokenSpan& span : normalized_matcher.split(view, options.parse_special)) {
    const std::string_view part = view.substr(span.begin, span.end - span.begin);
    if (span.token) {
      tokens.push_back(*span.token);
    } else if (options.drop_marks) {
      encode_plain(drop_input_marks(part), at_start && span.begin == 0, tokens);
    } else {
      encode_plain(part, at_start && span.begin == 0, tokens);
    }
  }
}

void Tokenizer::Impl::encode_valid(std::string_view text, bool at_start, const EncodeOptions& options,
                                   std::vector<TokenId>& tokens) const {
  for (const AddedTokenSpan& span : raw_matcher.split(text, options.parse_special)) {
    if (span.token) {
      tokens.push_back(*span.token);
    } else {
      encode_stretch(text.substr(span.begin, span.end - span.begin), at_start && span.begin == 0, options,
                     tokens);
    }
  }
}

std::string_view Tokenizer::Impl::text_of(TokenId token, bool skip_special) const {
  if (!has_id(token)) return {};
  if (!is_control(token)) return token_bytes[token];
  return skip_special ? std::string_view() : std::string_view(spec.pieces[token]);
}

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(TokenizerSpec spec) {
  OUTRIDER_RETURN_IF_ERROR(complete_and_check(spec));
  auto impl = std::make_unique<Impl>();
  impl->spec = std::move(spec);
  const TokenizerSpec& checked = impl->spec;
  OUTRIDER_TRY(impl->piece_ids, index_pieces(checked));
  OUTRIDER_TRY(impl->normalizer, Normalizer::create(checked.normalizer));
  OUTRIDER_TRY(impl->pre_tokenizer, PreTokenizer::create(checked.split_patterns));
  OUTRIDER_TRY(impl->model, create_model(checked, impl->piece_ids));
  impl->token_bytes = bytes_of_pieces(checked);
  impl->index_added_tokens();
  for (size_t id = 0; id < checked.pieces.size(); ++id) {
    if (checked.pieces[id].empty()) impl->unused.push_back(static_cast<TokenId>(id));
  }
  impl->prefix = checked.prefix;
  impl->suffix = checked.suffix;
  if (checked.add_bos) impl->prefix.insert(impl->prefix.begin(), *checked.bos);
  if (checked.add_eos) impl->suffix.push_back(*checked.eos);
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(impl)));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<TokenId> tokens;
  if (options.add_special) tokens = impl_->prefix;
  for (size_t position = 0; position < text.size();) {
    const size_t valid = utf8::valid_prefix(text.substr(position));
    if (valid > 0) {
      impl_->encode_valid(text.substr(position, valid), position == 0, options, tokens);
    } else {
      impl_->model->encode_byte(static_cast<unsigned char>(text[position]), tokens);
    }
    position += std::max<size_t>(valid, 1);
  }
  if (options.add_special) tokens.insert(tokens.end(), impl_->suffix.begin(), impl_->suffix.end());
  return tokens;
}

std::string Tokenizer::mark_input(std::string_view text) const {
  std::string marked;
  marked.reserve(text.size());
  while (!text.empty()) {
    const bool starts_token = impl_->control_matcher.starts_special(text);
    const bool starts_mark = text.starts_with(kMarkStart);
    const auto length = static_cast<size_t>(std::max(utf8::decode(text).length, 1));
    marked += text.substr(0, length);
    if (starts_mark) marked += kEscape;
    if (starts_token) marked.append(kMarkStart).append(kMark);
    text.remove_prefix(length);
  }
  return marked;
}

std::string Tokenizer::decode(std::span<const TokenId> tokens, bool skip_special) const {
  std::string text;
  for (const TokenId token : tokens) text += impl_->text_of(token, skip_special);
  if (impl_->strips_leading_space() && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::string_view Tokenizer::token_bytes(TokenId token) const { return impl_->text_of(token, true); }

std::string_view Tokenizer::token_piece(TokenId token) const {
  return impl_->has_id(token) ? std::string_view(impl_->spec.pieces[token]) : std::string_view();
}

bool Tokenizer::is_control(TokenId token) const { return impl_->is_control(token); }

const std::vector<TokenId>& Tokenizer::unused() const { return impl_->unused; }

std::optional<TokenId> Tokenizer::find_piece(std::string_view piece) const {
  const auto found = impl_->piece_ids.find(piece);
  if (found == impl_->piece_ids.end()) return std::nullopt;
  return found->second;
}

int Tokenizer::vocab_size() const { return static_cast<int>(impl_->spec.pieces.size()); }
std::optional<TokenId> Tokenizer::bos() const { return impl_->spec.bos; }
std::optional<TokenId> Tokenizer::eos() const { return impl_->spec.eos; }

bool Tokenizer::adds_bos() const {
  return impl_->spec.bos && !impl_->prefix.empty() && impl_->prefix.front() == *impl_->spec.bos;
}

namespace {

// The number of bytes that become one U+FFFD: as Unicode recommends, the longest beginning of a character.
size_t length_of_remains(std::string_view text) {
  size_t length = 1;
  while (length < text.size() && utf8::is_unfinished(text.substr(0, length + 1))) ++length;
  return length;
}

}  // namespace

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {
  constexpr size_t kLongToken = 256;  // bytes; longer tokens allocate
  pending_.reserve(kLongToken);
  complete_.reserve(kLongToken);
}

std::string_view StreamDecoder::push(TokenId token) {
  pending_ += tokenizer_->impl_->text_of(token, skip_special_);
  complete_.clear();
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const size_t valid = utf8::valid_prefix(rest);
    complete_ += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty() || utf8::is_unfinished(rest)) break;
    complete_ += kReplacementCharacter;
    rest.remove_prefix(length_of_remains(rest));
  }
  pending_.erase(0, pending_.size() - rest.size());
  if (at_start_ && !complete_.empty()) {
    at_start_ = false;
    if (tokenizer_->impl_->strips_leading_space() && complete_.starts_with(' ')) complete_.erase(0, 1);
  }
  return complete_;
}

std::string StreamDecoder::finish() {
  const bool unfinished = !pending_.empty();
  pending_.clear();
  return unfinished ? std::string(kReplacementCharacter) : std::string();
}

}  // namespace outrider
