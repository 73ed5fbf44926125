// SPDX-License-Identifier: Apache-2.0
#include "tests/lossless/plain_reference.h"

#include <algorithm>
#include <limits>
#include <span>

#include "sampling/log_probability.h"
#include "sampling/logits_processor.h"
#include "sampling/randomness.h"

namespace outrider {
namespace {

// A constraint as plain decoding reads it; where it throws, nothing comes.
class Language {
 public:
  explicit Language(TokenConstraint* constraint) : constraint_(constraint) {
    if (constraint != nullptr) state_ = constraint->start();
  }

  std::span<const float> masked(std::span<const float> logits) {
    if (constraint_ == nullptr) return logits;
    const std::vector<uint64_t> words = allowed();
    masked_.assign(logits.begin(), logits.end());
    for (size_t token = 0; token < masked_.size(); ++token) {
      const bool may_come = token / 64 < words.size() && (words[token / 64] >> token % 64 & 1) != 0;
      if (!may_come) masked_[token] = -std::numeric_limits<float>::infinity();
    }
    return masked_;
  }

  void take(TokenId token) {
    if (constraint_ == nullptr) return;
    try {
      state_ = constraint_->advance(state_, token);
    } catch (...) {
      state_ = TokenConstraint::kDead;
    }
  }

  bool has_ended() {
    if (constraint_ == nullptr) return false;
    try {
      return state_ == TokenConstraint::kDead || constraint_->is_complete(state_);
    } catch (...) {
      return true;
    }
  }

 private:
  std::vector<uint64_t> allowed() {
    try {
      const std::span<const uint64_t> words = constraint_->allowed(state_);
      return {words.begin(), words.end()};
    } catch (...) {
      return {};
    }
  }

  TokenConstraint* constraint_;
  TokenConstraint::State state_ = 0;
  std::vector<float> masked_;
};

}  // namespace

Expected plain_output(const HashModel& model, const Request& request, int64_t context) {
  Expected expected;
  std::vector<TokenId> tokens = request.prompt;
  LogitsProcessor distributions;
  for (size_t i = 1; i < tokens.size() && request.prompt_logprobs >= 0; ++i) {
    const std::vector<float> logits = model.logits_after(std::span(tokens).first(i));
    const auto row = std::span(logits).first(kLetters + 1);
    const LogSoftmax distribution(row);
    expected.prompt_logprobs.push_back(distribution.list(tokens[i], request.prompt_logprobs));
    expected.prompt_logprobs.back().rank = distribution.rank(tokens[i]);
  }
  Language language(request.constraint.get());
  if (language.has_ended()) {
    expected.reason = FinishReason::kStop;
    return expected;
  }
  if (request.max_tokens == 0) return expected;
  while (true) {
    TokenHistory history;
    history.add_prompt(request.prompt);
    for (const TokenId token : expected.tokens) history.push(token);
    const std::vector<float> logits = model.logits_after(tokens);
    const auto row = std::span(logits).first(kLetters + 1);
    const Distribution& distribution = distributions.build(language.masked(row), request.sampling, history);
    if (distribution.empty()) {
      expected.reason = FinishReason::kStop;
      return expected;
    }
    CounterRandomness randomness(request.sampling.seed, request.sample_index);
    const TokenId token = randomness.coupled_pick(distribution, static_cast<int64_t>(tokens.size()));
    language.take(token);
    tokens.push_back(token);
    expected.tokens.push_back(token);
    if (request.logprobs >= 0) expected.logprobs.push_back(LogSoftmax(row).list(token, request.logprobs));
    const bool is_stop =
        std::find(request.stop_tokens.begin(), request.stop_tokens.end(), token) != request.stop_tokens.end();
    if (is_stop || (token == kEos && !request.ignore_eos)) {
      if (token != kEos) expected.text += static_cast<char>('a' + token);
      expected.reason = FinishReason::kStop;
      // A stop token is part of the output, its text is not.
      if (token != kEos) expected.text.pop_back();
      return expected;
    }
    if (token != kEos) expected.text += static_cast<char>('a' + token);
    size_t cut = std::string::npos;
    for (const std::string& stop : request.stop) cut = std::min(cut, expected.text.find(stop));
    if (cut != std::string::npos) {
      expected.text.resize(cut);
      expected.reason = FinishReason::kStop;
      return expected;
    }
    if (language.has_ended()) {
      expected.reason = FinishReason::kStop;
      return expected;
    }
    if (static_cast<int64_t>(expected.tokens.size()) == request.max_tokens ||
        static_cast<int64_t>(tokens.size()) == context) {
      return expected;
    }
  }
}

}  // namespace outrider
