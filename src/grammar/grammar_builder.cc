// SPDX-License-Identifier: Apache-2.0
#include "grammar/grammar_builder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/utf8.h"

namespace outrider {
namespace {

std::u32string characters_of(std::string_view text) {
  std::u32string characters;
  while (!text.empty()) {
    const utf8::CodePoint next = utf8::decode(text);
    characters += static_cast<char32_t>(next.value);
    text.remove_prefix(static_cast<size_t>(std::max(next.length, 1)));
  }
  return characters;
}

// The length of the longest beginning of `word` that `text` ends with.
size_t matched_end(const std::u32string& word, const std::u32string& text) {
  size_t length = std::min(word.size(), text.size());
  while (!text.ends_with(word.substr(0, length))) --length;
  return length;
}

}  // namespace

std::string GrammarBuilder::excess() const {
  if (nodes_.size() > kMaxExpressions) {
    return "is too large: more than " + std::to_string(kMaxExpressions) + " parts";
  }
  if (now_ms() <= last_ms_) return {};
  return "takes more than " + std::to_string(std::lround(seconds_)) + " s to prepare; make it simpler";
}

GrammarExpr GrammarBuilder::add(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<GrammarExpr>(nodes_.size() - 1);
}

GrammarExpr GrammarBuilder::bytes(const ByteSet& set) {
  byte_sets_.push_back(set);
  return add({.kind = Kind::kBytes, .index = static_cast<int32_t>(byte_sets_.size() - 1)});
}

GrammarExpr GrammarBuilder::literal(std::string_view bytes) {
  if (bytes.empty()) return empty();
  literals_.emplace_back(bytes);
  return add({.kind = Kind::kLiteral, .index = static_cast<int32_t>(literals_.size() - 1)});
}

GrammarExpr GrammarBuilder::characters(const CodePointSet& set) {
  character_sets_.push_back(set);
  return add({.kind = Kind::kCharacters, .index = static_cast<int32_t>(character_sets_.size() - 1)});
}

GrammarExpr GrammarBuilder::sequence(std::vector<GrammarExpr> parts) {
  if (parts.size() == 1) return parts.front();
  return add({.kind = Kind::kSequence, .parts = std::move(parts)});
}

GrammarExpr GrammarBuilder::choice(std::vector<GrammarExpr> parts) {
  if (parts.size() == 1) return parts.front();
  return add({.kind = Kind::kChoice, .parts = std::move(parts)});
}

GrammarExpr GrammarBuilder::repeat(GrammarExpr part, int32_t min, int32_t max) {
  return add({.kind = Kind::kRepeat, .min = min, .max = max, .parts = {part}});
}

GrammarExpr GrammarBuilder::one_of(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return one_of_sorted(texts, 0, texts.size(), 0);
}

// An expression for the rest of texts[begin, end) after their first `skip` bytes, which are equal.
GrammarExpr GrammarBuilder::one_of_sorted(const std::vector<std::string>& texts, size_t begin, size_t end,
                                          size_t skip) {
  std::vector<GrammarExpr> choices;
  while (begin < end) {
    if (texts[begin].size() == skip) {
      choices.push_back(empty());
      ++begin;
      continue;
    }
    size_t group = begin + 1;
    while (group < end && texts[group][skip] == texts[begin][skip]) ++group;
    const std::string& first = texts[begin];
    const std::string& last = texts[group - 1];
    size_t common = skip + 1;
    while (common < first.size() && common < last.size() && first[common] == last[common]) ++common;
    const GrammarExpr head = literal(std::string_view(first).substr(skip, common - skip));
    choices.push_back(group - begin == 1 ? head
                                         : sequence({head, one_of_sorted(texts, begin, group, common)}));
    begin = group;
  }
  return choice(std::move(choices));
}

GrammarExpr GrammarBuilder::none_of(const std::vector<std::u32string>& texts,
                                    const CodePointSet& characters_allowed) {
  const GrammarExpr any = characters(characters_allowed);
  const GrammarExpr rest = repeat(any, 0, kUnbounded);
  // A trie of the texts: after leaving it any characters may follow; the string must not end at a text's end.
  struct TrieNode {
    std::map<char32_t, size_t> children;
    bool is_end = false;
  };
  std::vector<TrieNode> trie(1);
  for (const std::u32string& text : texts) {
    size_t node = 0;
    for (const char32_t character : text) {
      auto [it, is_new] = trie[node].children.try_emplace(character, trie.size());
      node = it->second;
      if (is_new) trie.emplace_back();
    }
    trie[node].is_end = true;
  }
  std::vector<GrammarExpr> expressions(trie.size());
  for (size_t i = trie.size(); i-- > 0;) {  // children come after their parents
    std::vector<GrammarExpr> choices;
    CodePointSet taken;
    for (const auto& [character, child] : trie[i].children) {
      const CodePointSet one{{character, character}};
      taken.add(one);
      choices.push_back(sequence({characters(one), expressions[child]}));
    }
    choices.push_back(sequence({characters(characters_allowed.without(taken)), rest}));
    if (!trie[i].is_end) choices.push_back(empty());
    // A rule per node keeps long texts from nesting deeply.
    expressions[i] = rule("other name", choice(std::move(choices)));
  }
  return expressions[0];
}

// A rule for each beginning of the text: what may follow where the string so far ends with it.
GrammarExpr GrammarBuilder::text_without(std::string_view text) {
  const std::u32string word = characters_of(text);
  std::vector<int32_t> rules;
  for (size_t i = 0; i < word.size(); ++i) rules.push_back(add_rule("text"));
  for (size_t i = 0; i < word.size(); ++i) {
    std::vector<GrammarExpr> choices = {empty()};
    CodePointSet known;
    for (const char32_t character : word) {
      if (known.contains(character)) continue;
      const CodePointSet one{{character, character}};
      known.add(one);
      const size_t next = matched_end(word, word.substr(0, i) + character);
      if (next < word.size()) choices.push_back(sequence({characters(one), reference(rules[next])}));
    }
    choices.push_back(sequence({characters(known.negated()), reference(rules[0])}));
    define(rules[i], choice(std::move(choices)));
  }
  return reference(rules[0]);
}

int32_t GrammarBuilder::add_rule(std::string name) {
  rules_.push_back({std::move(name), -1});
  return static_cast<int32_t>(rules_.size() - 1);
}

GrammarExpr GrammarBuilder::reference(int32_t rule) { return add({.kind = Kind::kReference, .index = rule}); }

GrammarExpr GrammarBuilder::rule(std::string name, GrammarExpr body) {
  const int32_t index = add_rule(std::move(name));
  define(index, body);
  return reference(index);
}

}  // namespace outrider
