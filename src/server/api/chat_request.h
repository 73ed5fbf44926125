// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api/generation_spec.h"
#include "server/api/tool_calls/tool_use.h"

namespace outrider {

// A conversation as the model's template puts it.
struct ChatPrompt {
  std::string text;
  std::vector<TokenId> tokens;
  ToolUse tools;
  bool can_think = false;        // the template knows <think> blocks
  bool begins_thinking = false;  // the prompt ends with <think>
  std::vector<std::string> ignored;
};

// messages, tools and what else the template is given. Control tokens inside of messages and tools are text.
ApiResult<ChatPrompt> make_chat_prompt(const RequestField& root, const ServedModel& model,
                                       const ApiLimits& limits);
// Whether make_chat_prompt() reads a field of that name.
bool is_prompt_field(std::string_view name);

struct ChatSpec : GenerationSpec {
  ChatPrompt prompt;
  bool logprobs = false;
  int top_logprobs = 0;
};

// All but the requests' constraints.
ApiResult<ChatSpec> read_chat_request(const RequestField& root, const GenerationCall::Context& context);

}  // namespace outrider
