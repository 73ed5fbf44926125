// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/shown_messages.h"

#include <map>
#include <utility>

#include "server/api/json_text.h"

namespace outrider {
namespace {

void append_paragraph(std::string& text, const std::string& paragraph) {
  if (!text.empty()) text += "\n\n";
  text += paragraph;
}

void add_instructions(std::vector<ChatMessage>& messages, const ToolUse& tools) {
  std::string text = tool_instructions(tools);
  if (messages.front().role != "system") {
    messages.insert(messages.begin(), ChatMessage{.role = "system", .content = ""});
  }
  append_paragraph(*messages.front().content, text);
}

// {"name": "f", "arguments": {...}}, the form that tool_instructions() ask for.
std::string call_text(const ChatToolCall& call) {
  std::string text = "{\"name\": ";
  append_json_string(text, call.name);
  return text.append(", \"arguments\": ").append(call.arguments).append("}");
}

void write_calls(ChatMessage& message) {
  std::string text = message.content.value_or("");
  for (const ChatToolCall& call : message.tool_calls) {
    if (!text.empty()) text += '\n';
    text += call_text(call);
  }
  message.content = std::move(text);
  message.tool_calls.clear();
}

// Joins results, and a user's message after them, into one message, since many templates want the roles to
// alternate.
class ResultWriter {
 public:
  std::vector<ChatMessage> rewrite(std::vector<ChatMessage> messages) {
    for (ChatMessage& message : messages) {
      if (message.role == "tool") {
        add_result(message);
      } else if (message.role == "user" && is_after_result_) {
        append_paragraph(*written_.back().content, *message.content);
        is_after_result_ = false;
      } else {
        for (const ChatToolCall& call : message.tool_calls) names_[call.id] = call.name;
        if (!message.tool_calls.empty()) write_calls(message);
        written_.push_back(std::move(message));
        is_after_result_ = false;
      }
    }
    return std::move(written_);
  }

 private:
  void add_result(const ChatMessage& message) {
    const auto known = names_.find(message.tool_call_id);
    const std::string& name = known != names_.end() ? known->second : message.name;
    const std::string text = "Result of " + (name.empty() ? "the call" : name) + ": " + *message.content;
    if (is_after_result_) {
      written_.back().content->append("\n").append(text);
    } else {
      written_.push_back({.role = "user", .content = text});
    }
    is_after_result_ = true;
  }

  std::map<std::string, std::string> names_;  // of tools, by the ids of their calls
  std::vector<ChatMessage> written_;
  bool is_after_result_ = false;
};

void join_system_message(std::vector<ChatMessage>& messages) {
  if (messages.front().role != "system") return;
  std::string text = *messages.front().content;
  if (messages.size() == 1 || messages[1].role != "user") {
    messages.front().role = "user";
    return;
  }
  append_paragraph(text, *messages[1].content);
  messages[1].content = std::move(text);
  messages.erase(messages.begin());
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
  if (!abilities.shows_calls) messages = ResultWriter().rewrite(std::move(messages));
  if (!abilities.shows_system) join_system_message(messages);
  fill_contents(messages, abilities.needs_content);
}

}  // namespace outrider
