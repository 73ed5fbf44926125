// SPDX-License-Identifier: Apache-2.0
#include "drafters/draft_target/string_match.h"

#include <algorithm>

#include "drafters/draft_target/token_bytes.h"

namespace outrider {
namespace {

// The last words are at least so many tokens, back to a word's beginning; without one they are kMaxTokens.
constexpr size_t kMinTokens = 16;
constexpr size_t kMaxTokens = 64;

}  // namespace

StringMatch::StringMatch(const Tokenizer& target, int64_t target_vocab)
    : target_(&target),
      vocab_(std::min<int64_t>(target_vocab, target.vocab_size())),
      puts_space_(puts_space(target)) {
  for (TokenId token = 0; token < vocab_; ++token) {
    const std::string_view bytes = target.token_bytes(token);
    if (bytes.empty()) continue;
    // Several ids may stand for the same bytes. Text is made of the first that is not a byte by itself.
    const auto [found, is_new] = tokens_.emplace(bytes, token);
    if (!is_new && is_byte_token(target, found->second) && !is_byte_token(target, token))
      found->second = token;
    longest_ = std::max(longest_, bytes.size());
  }
}

std::string StringMatch::last_words(std::span<const TokenId> tokens) const {
  size_t begin = tokens.size();
  while (begin > 0 && tokens.size() - begin < kMaxTokens && !target_->is_control(tokens[begin - 1])) {
    --begin;
    const bool starts_word = target_->token_bytes(tokens[begin]).starts_with(' ');
    if (starts_word && tokens.size() - begin >= kMinTokens) break;
  }
  std::string words;
  for (const TokenId token : tokens.subspan(begin)) words += target_->token_bytes(token);
  return words;
}

void StringMatch::split(std::string_view words, std::string_view drafted, std::vector<Piece>& pieces) const {
  pieces.clear();
  std::string text = std::string(words) + std::string(drafted);
  if (puts_space_ && text.starts_with(' ')) text.erase(0, 1);
  const std::vector<TokenId> tokens = target_->encode(text, kPlainText);
  size_t total = 0;
  for (const TokenId token : tokens) total += target_->token_bytes(token).size();
  if (total < drafted.size()) return;
  const size_t before = total - drafted.size();
  size_t begin = 0;
  for (const TokenId token : tokens) {
    const std::string_view bytes = target_->token_bytes(token);
    const size_t at = begin;
    begin += bytes.size();
    if (at < before) continue;
    if (!add_longest(drafted, at - before, pieces)) return;
    // A normalizer may have changed the text, which is then no longer what was drafted.
    if (token >= vocab_ || drafted.substr(at - before, bytes.size()) != bytes) return;
    pieces.push_back({token, begin - before});
  }
  add_longest(drafted, drafted.size(), pieces);
}

// Spells the drafted text from the end of the last piece to `end`. False: the target has no tokens for it.
bool StringMatch::add_longest(std::string_view drafted, size_t end, std::vector<Piece>& pieces) const {
  size_t begin = pieces.empty() ? 0 : pieces.back().end;
  while (begin < end) {
    size_t length = std::min(longest_, end - begin);
    auto found = tokens_.find(drafted.substr(begin, length));
    while (found == tokens_.end() && length > 1) found = tokens_.find(drafted.substr(begin, --length));
    if (found == tokens_.end()) return false;
    begin += length;
    pieces.push_back({found->second, begin});
  }
  return true;
}

}  // namespace outrider
