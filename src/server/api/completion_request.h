// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/api/generation_spec.h"

namespace outrider {

struct CompletionPrompt {
  std::string text;  // for echo
  std::vector<TokenId> tokens;
};

struct CompletionSpec : GenerationSpec {
  std::vector<CompletionPrompt> prompts;
  bool echo = false;
  bool add_special_tokens = true;
  int logprobs = -1;  // -1: none
};

ApiResult<CompletionSpec> read_completion_request(const RequestField& root,
                                                  const GenerationCall::Context& context);

}  // namespace outrider
