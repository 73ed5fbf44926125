// SPDX-License-Identifier: Apache-2.0
#include "drafters/draft_target/vocabulary_bridge.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "drafters/draft_target/token_bytes.h"

namespace outrider {
namespace {

// The text is translated in segments of at least so many tokens, which end before a word; one without words
// ends after kLongestSegment.
constexpr size_t kShortestSegment = 32;
constexpr size_t kLongestSegment = 256;

// Control tokens are the same by their spelling, all others by their bytes.
std::string key_of(const Tokenizer& tokenizer, TokenId token) {
  const bool is_control = tokenizer.is_control(token);
  return std::string(is_control ? "c" : "t") +
         std::string(is_control ? tokenizer.token_piece(token) : tokenizer.token_bytes(token));
}

// The token of every key, among the first `count`. Several ids of one vocabulary may stand for the same
// bytes: the first counts that is not a byte by itself, because text is made of it.
std::unordered_map<std::string, TokenId> tokens_by_key(const Tokenizer& tokenizer, int64_t count) {
  std::unordered_map<std::string, TokenId> tokens;
  for (TokenId token = 0; token < count; ++token) {
    const auto [found, is_new] = tokens.emplace(key_of(tokenizer, token), token);
    if (!is_new && is_byte_token(tokenizer, found->second) && !is_byte_token(tokenizer, token))
      found->second = token;
  }
  return tokens;
}

}  // namespace

VocabularyBridge::VocabularyBridge(const Tokenizer& target, std::shared_ptr<const Tokenizer> draft,
                                   int64_t target_vocab)
    : target_(&target),
      draft_(std::move(draft)),
      draft_ids_(static_cast<size_t>(target_vocab), -1),
      target_ids_(static_cast<size_t>(draft_->vocab_size()), -1),
      target_puts_space_(puts_space(*target_)),
      draft_puts_space_(puts_space(*draft_)) {
  const auto known = tokens_by_key(*target_, std::min<int64_t>(target_vocab, target_->vocab_size()));
  for (const auto& [key, own] : tokens_by_key(*draft_, draft_->vocab_size())) {
    const auto found = known.find(key);
    if (found == known.end()) continue;
    draft_ids_[static_cast<size_t>(found->second)] = own;
    target_ids_[static_cast<size_t>(own)] = found->second;
    ++shared_;
  }
}

Status VocabularyBridge::check_shared() const {
  if (shared_ >= kMinShared) return {};
  return input_error("the draft model's vocabulary has " + std::to_string(shared_) +
                     " tokens in common with the target's, expected at least " + std::to_string(kMinShared) +
                     "; choose another draft model, or vocabulary_match=strings");
}

size_t VocabularyBridge::end_of_segment(std::span<const TokenId> tokens, size_t begin) const {
  const size_t last = std::min(tokens.size(), begin + kLongestSegment);
  for (size_t end = begin + kShortestSegment; end < last; ++end) {
    if (starts_word(tokens[end])) return end;
  }
  return last;
}

void VocabularyBridge::read(std::span<const TokenId> tokens, Text& text) const {
  const bool goes_on =
      text.read.size() <= tokens.size() && std::equal(text.read.begin(), text.read.end(), tokens.begin());
  if (!goes_on) text = {};
  text.tokens.resize(text.finished);
  if (text.finished == 0 && draft_->adds_bos() && draft_->bos()) text.tokens.push_back(*draft_->bos());
  for (size_t begin = text.read.size(); begin < tokens.size();) {
    const size_t end = end_of_segment(tokens, begin);
    encode(tokens.subspan(begin, end - begin), begin == 0, text.tokens);
    begin = end;
    // A segment that reaches the end of the tokens may go on.
    if (end == tokens.size()) break;
    text.finished = text.tokens.size();
    text.read.assign(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(end));
  }
}

// Control tokens that the draft does not have are left out.
void VocabularyBridge::encode(std::span<const TokenId> tokens, bool is_start,
                              std::vector<TokenId>& into) const {
  std::string text;
  for (const TokenId token : tokens) {
    if (!target_->is_control(token)) {
      text += target_->token_bytes(token);
      continue;
    }
    encode_text(text, is_start, into);
    text.clear();
    is_start = false;
    if (const TokenId own = draft_ids_[static_cast<size_t>(token)]; own >= 0) into.push_back(own);
  }
  encode_text(text, is_start, into);
}

void VocabularyBridge::encode_text(std::string_view text, bool is_start, std::vector<TokenId>& into) const {
  const bool has_space_of_its_own = is_start ? target_puts_space_ : draft_puts_space_;
  if (has_space_of_its_own && text.starts_with(' ')) text.remove_prefix(1);
  if (text.empty()) return;
  const std::vector<TokenId> tokens = draft_->encode(text, kPlainText);
  into.insert(into.end(), tokens.begin(), tokens.end());
}

std::span<const float> VocabularyBridge::translate(std::span<const float> logits, size_t width) {
  const size_t rows = logits.size() / width;
  const size_t vocab = draft_ids_.size();
  logits_.assign(rows * vocab, -std::numeric_limits<float>::infinity());
  for (size_t row = 0; row < rows; ++row) {
    for (size_t id = 0; id < std::min(width, target_ids_.size()); ++id) {
      if (const TokenId token = target_ids_[id]; token >= 0)
        logits_[row * vocab + static_cast<size_t>(token)] = logits[row * width + id];
    }
  }
  return logits_;
}

}  // namespace outrider
