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

// The constraint of a request under plain decoding. After it throws, it allows no token.
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

std::vector<TokenLogprobs> prompt_logprobs_of(const HashModel& model, const Request& request) {
  std::vector<TokenLogprobs> logprobs;
  if (request.prompt_logprobs < 0) return logprobs;
  for (size_t i = 1; i < request.prompt.size(); ++i) {
    const std::vector<float> logits = model.logits_after(std::span(request.prompt).first(i));
    const LogSoftmax distribution(logits, kLetters + 1);
    logprobs.push_back(distribution.list(request.prompt[i], request.prompt_logprobs));
    logprobs.back().rank = distribution.rank(request.prompt[i]);
  }
  return logprobs;
}

// Adds the text of `token`. Returns whether a stop token or a stop string ends the output.
bool add_text(TokenId token, const Request& request, std::string& text) {
  // A stop token is part of the output, its text is not.
  if (token == kEos && !request.ignore_eos) return true;
  if (std::ranges::find(request.stop_tokens, token) != request.stop_tokens.end()) return true;
  if (token != kEos) text += static_cast<char>('a' + token);
  size_t cut = std::string::npos;
  for (const std::string& stop : request.stop) cut = std::min(cut, text.find(stop));
  if (cut == std::string::npos) return false;
  text.resize(cut);
  return true;
}

}  // namespace

// A text, without what a slide dropped where it had filled the context, see Request::slide.
struct SlidingText {
  std::vector<TokenId> tokens;
  size_t prompt;  // tokens of the prompt among them, at least one
  uint64_t slides = 0;

  void slide(const Request& request, int64_t context) {
    std::vector<TokenId> left;
    const auto kept = static_cast<size_t>(request.slide);
    const size_t dropped = std::max<size_t>(1, (static_cast<size_t>(context) - kept) / 2);
    size_t of_prompt = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i >= kept && i < kept + dropped) continue;
      left.push_back(tokens[i]);
      of_prompt += i < prompt ? 1 : 0;
    }
    tokens = left;
    prompt = std::max<size_t>(1, of_prompt);
    ++slides;
  }
};

Expected plain_output(const HashModel& model, const Request& request, int64_t context) {
  Expected expected;
  expected.prompt_logprobs = prompt_logprobs_of(model, request);
  SlidingText text{request.prompt, request.prompt.size()};
  std::vector<TokenId>& tokens = text.tokens;
  LogitsProcessor processor;
  Language language(request.constraint.get());
  bool is_stopped = language.has_ended();
  const auto is_full = [&] { return std::ssize(tokens) >= context; };
  while (!is_stopped && std::ssize(expected.tokens) < request.max_tokens &&
         (!is_full() || request.slide >= 0)) {
    if (is_full()) text.slide(request, context);
    TokenHistory history;
    history.add_prompt(std::span(tokens).first(text.prompt));
    for (const TokenId token : std::span(tokens).subspan(text.prompt)) history.push(token);
    const std::vector<float> logits = model.logits_after(tokens);
    const auto row = std::span(logits).first(kLetters + 1);
    CounterRandomness randomness(request.sampling.seed, request.sample_index + (text.slides << 32));
    const double draw = randomness.exclusion_draw(std::ssize(tokens));
    const Distribution& distribution = processor.build(language.masked(row), request.sampling, history, draw);
    is_stopped = distribution.empty();
    if (is_stopped) break;
    const TokenId token = randomness.coupled_pick(distribution, std::ssize(tokens));
    language.take(token);
    tokens.push_back(token);
    expected.tokens.push_back(token);
    if (request.logprobs >= 0)
      expected.logprobs.push_back(LogSoftmax(logits, kLetters + 1).list(token, request.logprobs));
    is_stopped = add_text(token, request, expected.text) || language.has_ended();
  }
  if (is_stopped) expected.reason = FinishReason::kStop;
  return expected;
}

}  // namespace outrider
