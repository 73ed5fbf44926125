// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api/request_field.h"
#include "server/api/requests/generation_spec.h"

namespace outrider {

struct CompletionPrompt {
  std::string text;  // printed before the output if `echo` is set
  std::vector<TokenId> tokens;
};

struct CompletionSpec : GenerationSpec {
  std::vector<CompletionPrompt> prompts;
  bool echo = false;
  bool add_special_tokens = true;
  std::optional<std::string> suffix;  // the text after the output
  int logprobs = -1;                  // alternatives per token; -1: no log-probabilities
};

// Reads a string, an array of strings, an array of tokens, or an array of such arrays.
ApiStatus read_prompts(const RequestField& field, CompletionSpec& spec);

ApiResult<CompletionSpec> read_completion_request(const RequestField& root, const CallContext& context);

}  // namespace outrider
