// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "outrider/engine.h"
#include "server/api/json_writer.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// The text of a token in lists of tokens: its bytes, or the spelling of a control token.
std::string_view shown_token(const Tokenizer& tokenizer, TokenId token);

// Writes the log-probabilities of a chat answer: items of logprobs.content.
void write_chat_logprobs(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                         std::span<const TokenLogprobs> logprobs);

// Log-probabilities of a prompt in vLLM's format: null for the first token; for every other token an object
// with a member for each listed token id, beginning with the token itself.
struct PromptLogprobs {
  std::span<const TokenLogprobs> logprobs;  // of tokens[1], tokens[2], ...
  int top = 0;                              // alternatives listed per token
};
void write_prompt_logprobs(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                           const PromptLogprobs& list);

// The four lists of a completion's logprobs, collected token by token.
class CompletionLogprobs {
 public:
  CompletionLogprobs(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special, int top)
      : tokenizer_(std::move(tokenizer)), decoder_(tokenizer_, skip_special), top_(top) {}

  void add(std::span<const TokenId> tokens, std::span<const TokenLogprobs> logprobs);
  // Adds the tokens of a prompt, whose first token has no log-probability. They must come before all others.
  void add_prompt(std::span<const TokenId> tokens, std::span<const TokenLogprobs> logprobs);
  // Writes the object with everything that was added since the last call.
  void write_to(JsonWriter& json);

 private:
  void add_token(TokenId token);

  std::shared_ptr<const Tokenizer> tokenizer_;
  StreamDecoder decoder_;
  int top_;
  int64_t offset_ = 0;                              // characters (code points) so far
  std::string tokens_, logprobs_, tops_, offsets_;  // items, separated by commas
};

}  // namespace outrider
