// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "server/api/request_field.h"
#include "server/api/requests/chat_prompt.h"
#include "server/api/requests/generation_spec.h"

namespace outrider {

// Reads messages, tools and the other inputs of the template, and renders them. Adds the paths of fields
// without a meaning to `ignored`, unless it is null.
ApiResult<ChatPrompt> make_chat_prompt(const RequestField& root, const ServedModel& model,
                                       const ApiLimits& limits, std::vector<std::string>* ignored = nullptr);

struct ChatSpec : GenerationSpec {
  ChatPrompt prompt;
  bool logprobs = false;
  int top_logprobs = 0;
  bool splits_reasoning = true;            // reasoning is a separate field
  std::optional<int64_t> thinking_budget;  // tokens; unset: without a bound
  // Control tokens that are part of the output's text for the parser, and whether all others are left out.
  std::vector<TokenId> shown_control = {};
  bool hides_control = false;
};

// Tokens that the model may think, as vLLM's and Qwen's servers name it; -1 is no bound.
ApiStatus read_thinking_budget(const RequestField& field, ChatSpec& spec);

// Reads the whole request except for the constraints on its output (constraints.h).
ApiResult<ChatSpec> read_chat_request(const RequestField& root, const CallContext& context);

}  // namespace outrider
