// SPDX-License-Identifier: Apache-2.0
// Rewritings of conversations that a template cannot show as they came (docs/reference/api.md). Each takes
// the whole conversation.
#pragma once

#include <string>
#include <vector>

#include "chat_template/chat_template.h"

namespace outrider {

void append_paragraph(std::string& text, const std::string& paragraph);

// Results of calls that are not in the conversation become messages of the user.
void write_lone_results(std::vector<ChatMessage>& messages);
// Calls and results become text: see tool_instructions().
void write_calls_as_text(std::vector<ChatMessage>& messages);
// Ids of calls and results become nine letters and digits, the same id the same ones.
void shorten_ids(std::vector<ChatMessage>& messages);
// A message with several calls becomes one for each call, followed by its results.
void split_calls(std::vector<ChatMessage>& messages);
// The text beside a call becomes the end of the thinking before it.
void move_call_text(std::vector<ChatMessage>& messages);
// System messages after the first message become a paragraph before the user's next message, or after the
// user's last one.
void move_late_system(std::vector<ChatMessage>& messages);
// The system message becomes a paragraph before the user's first message.
void move_first_system(std::vector<ChatMessage>& messages);
// Neighbours of one role become one message, and an empty message of the user comes before an assistant's
// first.
void join_neighbours(std::vector<ChatMessage>& messages);

}  // namespace outrider
