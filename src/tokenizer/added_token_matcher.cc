// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/added_token_matcher.h"

#include <algorithm>

#include "base/utf8.h"

namespace outrider {
namespace {

bool ends_with_word(std::string_view text) {
  return !text.empty() && utf8::is_word(utf8::decode_last(text).value);
}
bool starts_with_word(std::string_view text) {
  return !text.empty() && utf8::is_word(utf8::decode(text).value);
}

size_t without_trailing_space(std::string_view text) {
  while (!text.empty()) {
    const utf8::CodePoint last = utf8::decode_last(text);
    if (!utf8::is_space(last.value)) break;
    text.remove_suffix(last.length);
  }
  return text.size();
}

size_t leading_space(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const utf8::CodePoint next = utf8::decode(text.substr(length));
    if (!utf8::is_space(next.value)) break;
    length += next.length;
  }
  return length;
}

uint64_t child_key(int32_t node, char byte) {
  return static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher() : entry_of_node_(1, -1) { first_.fill(-1); }

void AddedTokenMatcher::add(std::string_view spelling, const AddedToken& token, bool special) {
  int32_t node = 0;
  for (const char byte : spelling) {
    const auto [child, is_new] = children_.try_emplace(child_key(node, byte), entry_of_node_.size());
    if (is_new) entry_of_node_.push_back(-1);
    if (node == 0) first_[static_cast<unsigned char>(byte)] = child->second;
    node = child->second;
  }
  if (entry_of_node_[node] >= 0) return;
  entry_of_node_[node] = static_cast<int32_t>(tokens_.size());
  tokens_.push_back({token, special});
}

AddedTokenMatcher::Match AddedTokenMatcher::longest_match(std::string_view text) const {
  Match match;
  int32_t node = first_[static_cast<unsigned char>(text[0])];
  for (size_t length = 1; node >= 0; ++length) {
    if (entry_of_node_[node] >= 0) match = {length, entry_of_node_[node]};
    if (length == text.size()) break;
    const auto child = children_.find(child_key(node, text[length]));
    node = child == children_.end() ? -1 : child->second;
  }
  return match;
}

bool AddedTokenMatcher::starts_special(std::string_view text) const {
  const Match match = longest_match(text);
  return match.entry >= 0 && tokens_[match.entry].special;
}

std::vector<AddedTokenSpan> AddedTokenMatcher::split(std::string_view text, bool parse_special) const {
  std::vector<AddedTokenSpan> spans;
  size_t covered = 0;
  for (size_t position = 0; position < text.size();) {
    if (first_[static_cast<unsigned char>(text[position])] < 0) {  // no token begins so, as nearly everywhere
      ++position;
      continue;
    }
    const Match match = longest_match(text.substr(position));
    if (match.entry < 0) {
      ++position;
      continue;
    }
    const size_t start = position;
    position += match.length;  // the search goes on after the match even if it is discarded below
    const Entry& entry = tokens_[match.entry];
    if (entry.special && !parse_special) continue;
    if (entry.token.single_word &&
        (ends_with_word(text.substr(0, start)) || starts_with_word(text.substr(position)))) {
      continue;
    }
    size_t begin = std::max(start, covered);  // the previous token may have taken white space of this one
    size_t end = position;
    if (entry.token.lstrip) begin = covered + without_trailing_space(text.substr(covered, begin - covered));
    if (entry.token.rstrip) end += leading_space(text.substr(end));
    if (covered < begin) spans.push_back({covered, begin, std::nullopt});
    spans.push_back({begin, end, entry.token.id});
    covered = end;
  }
  if (covered < text.size()) spans.push_back({covered, text.size(), std::nullopt});
  return spans;
}

}  // namespace outrider
