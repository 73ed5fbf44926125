// SPDX-License-Identifier: Apache-2.0
// The commit table: every block of tokens against every limit equals plain decoding, one token at a time.
#include "engine/sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace outrider::sequence_test {
namespace {

// "a", "S" and "T" are text ("ST" is the stop string), "x" is the text of a stop token, <eos> ends the text.
constexpr TokenId kStopToken = 3;
constexpr TokenId kEos = 4;
constexpr int kAlphabet = 5;
const std::string kText[kAlphabet] = {"a", "S", "T", "x", ""};

std::shared_ptr<const Tokenizer> tokenizer() {
  static const std::shared_ptr<const Tokenizer> made = [] {
    TokenizerSpec spec;
    spec.pieces = {"a", "S", "T", "x", "<eos>"};
    spec.attributes.assign(4, TokenAttribute::kNormal);
    spec.attributes.push_back(TokenAttribute::kControl);
    spec.eos = kEos;
    auto result = Tokenizer::create(std::move(spec));
    EXPECT_TRUE(result.ok());
    return *result;
  }();
  return made;
}

struct Case {
  int64_t max_tokens = 0;
  int64_t context = 0;
  bool ignore_eos = false;
  bool has_stop_string = false;
  bool has_stop_token = false;
};

struct Outcome {
  std::vector<TokenId> tokens;
  std::string text;
  std::optional<FinishReason> reason;
};

// Obvious: looks at the whole text again after every token.
Outcome reference(const Case& limits, const std::vector<TokenId>& block) {
  Outcome outcome;
  for (const TokenId token : block) {
    outcome.tokens.push_back(token);
    if ((token == kEos && !limits.ignore_eos) || (token == kStopToken && limits.has_stop_token)) {
      outcome.reason = FinishReason::kStop;
      return outcome;
    }
    outcome.text += kText[token];
    const size_t stop = limits.has_stop_string ? outcome.text.find("ST") : std::string::npos;
    if (stop != std::string::npos) {
      outcome.text.resize(stop);
      outcome.reason = FinishReason::kStop;
      return outcome;
    }
    const auto length = static_cast<int64_t>(outcome.tokens.size());
    if (length == limits.max_tokens || 1 + length == limits.context) {
      outcome.reason = FinishReason::kLength;
      return outcome;
    }
  }
  return outcome;
}

Outcome commit(const Case& limits, const std::vector<TokenId>& block, size_t step) {
  Request request;
  request.prompt = {0};
  request.max_tokens = limits.max_tokens;
  request.ignore_eos = limits.ignore_eos;
  if (limits.has_stop_string) request.stop = {"ST"};
  if (limits.has_stop_token) request.stop_tokens = {kStopToken};
  const std::vector<TokenId> model_stops = {kEos};
  std::string streamed;
  Sequence sequence(1, request, [&](RequestId, const Progress& progress) { streamed += progress.text; },
                    tokenizer(), {.context = limits.context, .model_stop_tokens = model_stops});
  const std::vector<TokenOrigin> origins(block.size(), TokenOrigin::kPlain);
  for (size_t begin = 0; begin < block.size() && !sequence.finished(); begin += step) {
    const size_t count = std::min(step, block.size() - begin);
    const int committed =
        sequence.commit(std::span(block).subspan(begin, count), std::span(origins).subspan(begin, count));
    EXPECT_GE(committed, 1);
    sequence.publish();
  }
  Outcome outcome;
  const Completion& completion = sequence.completion();
  outcome.tokens = completion.tokens;
  outcome.text = completion.text;
  if (sequence.finished()) outcome.reason = completion.finish_reason;
  EXPECT_EQ(streamed, completion.text);
  EXPECT_EQ(completion.origins.size(), completion.tokens.size());
  EXPECT_EQ(sequence.tokens().size(), 1 + completion.tokens.size());
  return outcome;
}

TEST(SequenceCommit, EqualsOneTokenAtATimeForEveryBlockAndLimit) {
  int64_t cases = 0;
  for (int length = 1; length <= 5; ++length) {
    int blocks = 1;
    for (int i = 0; i < length; ++i) blocks *= kAlphabet;
    for (int code = 0; code < blocks; ++code) {
      std::vector<TokenId> block;
      for (int i = 0, rest = code; i < length; ++i, rest /= kAlphabet) block.push_back(rest % kAlphabet);
      for (int flags = 0; flags < 8; ++flags) {
        for (int64_t room = 1; room <= 6; room += length > 3 ? 2 : 1) {
          const bool by_context = (code + flags) % 2 == 0;
          const Case limits{.max_tokens = by_context ? 100 : room,
                            .context = by_context ? room + 1 : 100,
                            .ignore_eos = (flags & 1) != 0,
                            .has_stop_string = (flags & 2) != 0,
                            .has_stop_token = (flags & 4) != 0};
          const Outcome expected = reference(limits, block);
          for (const size_t step : {block.size(), size_t{1}, size_t{2}}) {
            const Outcome got = commit(limits, block, step);
            ASSERT_EQ(got.tokens, expected.tokens);
            ASSERT_EQ(got.reason, expected.reason);
            // Before the end, text that may begin a stop string is still held back.
            if (expected.reason) {
              ASSERT_EQ(got.text, expected.text);
            } else {
              ASSERT_EQ(got.text, expected.text.substr(0, got.text.size()));
            }
            ++cases;
          }
        }
      }
    }
  }
  EXPECT_GT(cases, 100000);
}

}  // namespace
}  // namespace outrider::sequence_test
