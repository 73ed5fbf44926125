// SPDX-License-Identifier: Apache-2.0
// A conversation as the prompt of the model, whichever API it came by.
#pragma once

#include <string>
#include <vector>

#include "chat_template/chat_template.h"
#include "server/api/request_field.h"
#include "server/api/served_model.h"
#include "server/api/tool_calls/output_parser.h"
#include "server/api/tools/tool_use.h"

namespace outrider {

struct ChatInput {
  std::vector<ChatMessage> messages = {};
  std::string messages_path = {};  // of the field that holds them, for errors
  ToolUse tools = {};
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  TemplateValues values = {};  // beyond the server's
};

// A conversation rendered by the model's template.
struct ChatPrompt {
  std::string text;
  std::vector<TokenId> tokens;
  ToolUse tools;
  OutputParts output = {};  // what the answer may consist of
};

// Renders a conversation. Parts that the template cannot show are written as text (docs/reference/api.md,
// "Templates without tools"). Control tokens that occur in messages and tools are read as plain text.
ApiResult<ChatPrompt> render_chat(ChatInput input, const ServedModel& model);

}  // namespace outrider
