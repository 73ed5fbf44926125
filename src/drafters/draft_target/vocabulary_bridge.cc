// SPDX-License-Identifier: Apache-2.0
#include "drafters/draft_target/vocabulary_bridge.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace outrider {
namespace {

// The text is translated in segments of at least so many tokens, which end before a word; one without words
// ends after kLongestSegment.
constexpr size_t kShortestSegment = 32;
constexpr size_t kLongestSegment = 256;

constexpr EncodeOptions kPlainText = {.add_special = false, .parse_special = false};

// Control tokens are the same by their spelling, all others by their bytes.
std::string key_of(const Tokenizer& tokenizer, TokenId token) {
  const bool is_control = tokenizer.is_control(token);
  return std::string(is_control ? "c" : "t") +
         std::string(is_control ? tokenizer.token_piece(token) : tokenizer.token_bytes(token));
}

// Whether the tokenizer puts a space before every text.
bool puts_space(const Tokenizer& tokenizer) {
  const std::vector<TokenId> letter = tokenizer.encode("a", kPlainText);
  return !letter.empty() && tokenizer.token_bytes(letter.front()).starts_with(' ');
}

}  // namespace

Result<VocabularyBridge> VocabularyBridge::create(const Tokenizer& target,
                                                  std::shared_ptr<const Tokenizer> draft,
                                                  int64_t target_vocab) {
  VocabularyBridge bridge(target, std::move(draft));
  bridge.match(target_vocab);
  if (bridge.shared_ >= kMinShared) return bridge;
  return input_error("the draft model's vocabulary has " + std::to_string(bridge.shared_) +
                     " tokens in common with the target's, expected at least " + std::to_string(kMinShared) +
                     "; choose another draft model");
}

void VocabularyBridge::match(int64_t target_vocab) {
  draft_ids_.assign(static_cast<size_t>(target_vocab), -1);
  target_ids_.assign(static_cast<size_t>(draft_->vocab_size()), -1);
  std::unordered_map<std::string, TokenId> known;
  const auto targets = static_cast<TokenId>(std::min<int64_t>(target_vocab, target_->vocab_size()));
  for (TokenId token = 0; token < targets; ++token) known.emplace(key_of(*target_, token), token);
  for (TokenId token = 0; token < draft_->vocab_size(); ++token) {
    const auto found = known.find(key_of(*draft_, token));
    // Several ids of one vocabulary may stand for the same bytes; the first of each are matched.
    if (found == known.end() || draft_ids_[static_cast<size_t>(found->second)] >= 0) continue;
    draft_ids_[static_cast<size_t>(found->second)] = token;
    target_ids_[static_cast<size_t>(token)] = found->second;
    ++shared_;
  }
  target_puts_space_ = puts_space(*target_);
  draft_puts_space_ = puts_space(*draft_);
}

size_t VocabularyBridge::end_of_segment(std::span<const TokenId> tokens, size_t begin) const {
  const size_t last = std::min(tokens.size(), begin + kLongestSegment);
  for (size_t end = begin + kShortestSegment; end < last; ++end) {
    if (starts_word(tokens[end])) return end;
  }
  return last;
}

void VocabularyBridge::read(std::span<const TokenId> tokens, Text& text) const {
  text.tokens.resize(text.finished);
  if (text.finished == 0 && draft_->adds_bos() && draft_->bos()) text.tokens.push_back(*draft_->bos());
  for (size_t begin = text.read; begin < tokens.size();) {
    const size_t end = end_of_segment(tokens, begin);
    encode(tokens.subspan(begin, end - begin), begin == 0, text.tokens);
    begin = end;
    // A segment that reaches the end of the tokens may go on.
    if (end == tokens.size()) break;
    text.finished = text.tokens.size();
    text.read = end;
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
