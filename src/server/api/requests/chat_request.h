// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api/request_field.h"
#include "server/api/requests/generation_spec.h"
#include "server/api/tool_calls/tool_use.h"

namespace outrider {

// A conversation rendered by the model's template.
struct ChatPrompt {
  std::string text;
  std::vector<TokenId> tokens;
  ToolUse tools;
  bool can_think = false;            // the template contains <think> blocks
  bool begins_thinking = false;      // the prompt ends with <think>
  std::vector<std::string> ignored;  // paths of fields
};

// Reads messages, tools and the other inputs of the template, and renders them. Control tokens that occur in
// messages and tools are read as plain text.
ApiResult<ChatPrompt> make_chat_prompt(const RequestField& root, const ServedModel& model,
                                       const ApiLimits& limits);
// Whether make_chat_prompt() reads the field `name`.
bool is_prompt_field(std::string_view name);

struct ChatSpec : GenerationSpec {
  ChatPrompt prompt;
  bool logprobs = false;
  int top_logprobs = 0;
};

// Reads the whole request except for the constraints on its output (constraints.h).
ApiResult<ChatSpec> read_chat_request(const RequestField& root, const CallContext& context);

}  // namespace outrider
