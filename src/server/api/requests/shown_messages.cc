// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/shown_messages.h"

#include "server/api/requests/history.h"

namespace outrider {
namespace {

void add_instructions(std::vector<ChatMessage>& messages, const ToolUse& tools) {
  std::string text = tool_instructions(tools);
  if (messages.front().role != "system") {
    messages.insert(messages.begin(), ChatMessage{.role = "system", .content = ""});
  }
  append_paragraph(*messages.front().content, text);
}

// Gives messages without content the value that the template understands.
void fill_contents(std::vector<ChatMessage>& messages, bool needs_content) {
  for (ChatMessage& message : messages) {
    const bool has_calls = !message.tool_calls.empty();
    if (has_calls && message.content && message.content->empty()) message.content.reset();
    if (!message.content && (needs_content || !has_calls)) message.content = "";
  }
}

}  // namespace

void rewrite_hidden_parts(std::vector<ChatMessage>& messages, const ToolUse& tools,
                          const TemplateAbilities& abilities) {
  if (tools.choice != ToolChoice::kNone && !abilities.shows_tools) add_instructions(messages, tools);
  if (!abilities.shows_calls) {
    write_calls_as_text(messages);
  } else {
    if (!abilities.shows_lone_results) write_lone_results(messages);
    if (!abilities.takes_any_id) shorten_ids(messages);
    if (!abilities.shows_several_calls) split_calls(messages);
    if (!abilities.takes_call_text) move_call_text(messages);
  }
  if (!abilities.shows_late_system) move_late_system(messages);
  if (!abilities.shows_system) move_first_system(messages);
  if (!abilities.shows_neighbours) join_neighbours(messages);
  fill_contents(messages, abilities.needs_content);
}

std::vector<TemplateAbilities> lesser_abilities(TemplateAbilities abilities) {
  std::vector<TemplateAbilities> lesser;
  abilities.takes_any_id = abilities.takes_call_text = false;
  abilities.shows_several_calls = abilities.shows_lone_results = false;
  abilities.shows_late_system = abilities.shows_neighbours = false;
  lesser.push_back(abilities);
  abilities.shows_calls = false;
  lesser.push_back(abilities);
  abilities.shows_system = false;
  lesser.push_back(abilities);
  return lesser;
}

}  // namespace outrider
