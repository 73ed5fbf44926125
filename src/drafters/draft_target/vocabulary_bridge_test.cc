// SPDX-License-Identifier: Apache-2.0
#include "drafters/draft_target/vocabulary_bridge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace outrider {
namespace {

std::shared_ptr<const Tokenizer> tokenizer_of(const std::string& name) {
  auto spec = read_tokenizer_json(OUTRIDER_SOURCE_DIR "/tests/data/tokenizer/" + name);
  EXPECT_TRUE(spec.ok()) << spec.error().message;
  auto tokenizer = Tokenizer::create(std::move(spec).value());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return *tokenizer;
}

VocabularyBridge bridge_of(const Tokenizer& target, const std::shared_ptr<const Tokenizer>& draft) {
  return {target, draft, target.vocab_size()};
}

// Targets with drafts of other families: bytes with bytes, bytes with pieces of SentencePiece, and back.
const std::vector<std::pair<std::string, std::string>> kPairs = {
    {"gpt2", "llama3"},         {"qwen2", "deepseek_v3"}, {"llama3", "llama2_prepend"},
    {"llama2_prepend", "gpt2"}, {"gemma", "qwen2"},       {"starcoder", "gemma"},
};

// Long enough for several segments; with characters of several bytes, which some tokens break.
std::string long_text() {
  std::string text = "The bridge of Königsberg";
  for (int i = 0; i < 40; ++i) {
    text += i % 7 == 6 ? "\n\nNext: " : ", then walk over the bridge";
    text += i % 5 == 4 ? " 桥梁 = 'naïve'()" : " again and again " + std::to_string(i * 37);
  }
  return text;
}

TEST(VocabularyBridge, ReadsTheTextWhole) {
  const std::string text = long_text();
  for (const auto& [target_name, draft_name] : kPairs) {
    const auto target = tokenizer_of(target_name), draft = tokenizer_of(draft_name);
    const std::vector<TokenId> tokens = target->encode(text, {.add_special = false});
    VocabularyBridge::Text read;
    bridge_of(*target, draft).read(tokens, read);
    EXPECT_EQ(draft->decode(read.tokens), target->decode(tokens)) << target_name << " to " << draft_name;
    EXPECT_GT(read.finished, 0u);
    EXPECT_GT(read.read.size(), 0u);
  }
}

// A draft must not depend on how many tokens came at a time.
TEST(VocabularyBridge, ReadsTheSameTokenByTokenAsAtOnce) {
  for (const auto& [target_name, draft_name] : kPairs) {
    const auto target = tokenizer_of(target_name), draft = tokenizer_of(draft_name);
    const VocabularyBridge bridge = bridge_of(*target, draft);
    const std::vector<TokenId> tokens = target->encode(long_text());
    VocabularyBridge::Text in_steps;
    for (size_t count = 1; count <= tokens.size(); ++count) {
      bridge.read(std::span(tokens).first(count), in_steps);
      VocabularyBridge::Text at_once;
      bridge.read(std::span(tokens).first(count), at_once);
      ASSERT_EQ(in_steps.tokens, at_once.tokens) << target_name << " to " << draft_name << " at " << count;
    }
  }
}

TEST(VocabularyBridge, SharedTokensAreTheSameText) {
  for (const auto& [target_name, draft_name] : kPairs) {
    const auto target = tokenizer_of(target_name), draft = tokenizer_of(draft_name);
    VocabularyBridge bridge = bridge_of(*target, draft);
    int shared = 0;
    std::vector<float> logits(static_cast<size_t>(draft->vocab_size()));
    for (size_t id = 0; id < logits.size(); ++id) logits[id] = static_cast<float>(id);
    std::vector<float> twice = logits;
    twice.insert(twice.end(), logits.begin(), logits.end());
    const std::span<const float> translated = bridge.translate(twice, logits.size());
    const auto targets = static_cast<size_t>(target->vocab_size());
    ASSERT_EQ(translated.size(), 2 * targets);
    for (size_t token = 0; token < targets; ++token) {
      const TokenId own = bridge.draft_ids()[token];
      EXPECT_EQ(translated[token], own < 0 ? -INFINITY : static_cast<float>(own));
      EXPECT_EQ(translated[targets + token], translated[token]);
      if (own < 0) continue;
      ++shared;
      EXPECT_EQ(target->token_bytes(static_cast<TokenId>(token)), draft->token_bytes(own));
    }
    EXPECT_EQ(shared, bridge.shared());
  }
}

// A drafter on the other side of a network drafts ahead, after tokens that may be taken back.
TEST(VocabularyBridge, ReadsAgainAfterTokensWereTakenBack) {
  for (const auto& [target_name, draft_name] : kPairs) {
    const auto target = tokenizer_of(target_name), draft = tokenizer_of(draft_name);
    const VocabularyBridge bridge = bridge_of(*target, draft);
    const std::vector<TokenId> tokens = target->encode(long_text());
    const auto shorter = std::span(tokens).first(40);
    std::vector<TokenId> other = tokens;
    std::reverse(other.begin() + 5, other.end());
    for (const std::span<const TokenId> next : {shorter, std::span<const TokenId>(other)}) {
      VocabularyBridge::Text again, fresh;
      bridge.read(tokens, again);
      bridge.read(next, again);
      bridge.read(next, fresh);
      EXPECT_EQ(again.tokens, fresh.tokens) << target_name << " to " << draft_name;
    }
  }
}

// Text is made of characters: "<0x2E>" would stand for a full stop that the target never writes.
TEST(VocabularyBridge, BytesByThemselvesAreSharedOnlyWhereNoCharacterIs) {
  for (const auto& [target_name, draft_name] : kPairs) {
    const auto target = tokenizer_of(target_name), draft = tokenizer_of(draft_name);
    const VocabularyBridge bridge = bridge_of(*target, draft);
    for (const char character : std::string("etaoin.,")) {
      const auto own = target->find_piece(std::string(1, character));
      const auto drafted = draft->find_piece(std::string(1, character));
      if (!own || !drafted) continue;
      EXPECT_EQ(bridge.draft_ids()[static_cast<size_t>(*own)], *drafted)
          << character << ": " << target_name << " to " << draft_name;
    }
  }
}

TEST(VocabularyBridge, NeedsSomethingInCommon) {
  const auto target = tokenizer_of("gpt2");
  const VocabularyBridge bridge(*target, tokenizer_of("gemma"), 3);
  const Status shared = bridge.check_shared();
  ASSERT_FALSE(shared.ok());
  EXPECT_NE(shared.error().message.find("tokens in common with the target's, expected at least 16"),
            std::string::npos);
}

}  // namespace
}  // namespace outrider
