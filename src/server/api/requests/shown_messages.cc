// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/shown_messages.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/fnv1a.h"
#include "server/api/json_text.h"

namespace outrider {
namespace {

void append_paragraph(std::string& text, const std::string& paragraph) {
  if (!text.empty() && !paragraph.empty()) text += "\n\n";
  text += paragraph;
}

constexpr size_t kShortId = 9;  // the length that Mistral's templates want

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
  // `lone_alone`: only results without a call, and no calls.
  explicit ResultWriter(bool lone_alone) : lone_alone_(lone_alone) {}

  std::vector<ChatMessage> rewrite(std::vector<ChatMessage> messages) {
    for (ChatMessage& message : messages) {
      for (const ChatToolCall& call : message.tool_calls) names_[call.id] = call.name;
      const bool is_written = !lone_alone_ || names_.find(message.tool_call_id) == names_.end();
      if (message.role == "tool" && is_written) {
        add_result(message);
      } else if (message.role == "user" && is_after_result_) {
        append_paragraph(*written_.back().content, *message.content);
        is_after_result_ = false;
      } else {
        if (!message.tool_calls.empty() && !lone_alone_) write_calls(message);
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

  bool lone_alone_;
  std::map<std::string, std::string> names_;  // of tools, by the ids of their calls
  std::vector<ChatMessage> written_;
  bool is_after_result_ = false;
};

bool is_short_id(const std::string& id) {
  return id.size() == kShortId &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
}

std::string short_id(const std::string& id) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  uint64_t hash = fnv1a(id);
  std::string text;
  for (size_t i = 0; i < kShortId; ++i) {
    text += kDigits[hash % kDigits.size()];
    hash /= kDigits.size();
  }
  return text;
}

// Adds what a message of the same role says to `message`.
void join(ChatMessage& message, ChatMessage next) {
  if (message.content && next.content) {
    append_paragraph(*message.content, *next.content);
  } else if (next.content) {
    message.content = std::move(next.content);
  }
  if (!next.reasoning_content.empty()) append_paragraph(message.reasoning_content, next.reasoning_content);
  std::move(next.tool_calls.begin(), next.tool_calls.end(), std::back_inserter(message.tool_calls));
}

// Results of calls that are not in the conversation become messages of the user.
void write_lone_results(std::vector<ChatMessage>& messages) {
  messages = ResultWriter(true).rewrite(std::move(messages));
}

// Calls and results become text: see tool_instructions().
void write_calls_as_text(std::vector<ChatMessage>& messages) {
  messages = ResultWriter(false).rewrite(std::move(messages));
}

// Calls without an id get one by their place, and results without an id the ids of such calls in their order.
void shorten_ids(std::vector<ChatMessage>& messages) {
  size_t calls = 0, results = 0;
  const auto shorten = [](std::string& id, size_t place) {
    if (!is_short_id(id)) id = short_id(id.empty() ? "call " + std::to_string(place) : id);
  };
  for (ChatMessage& message : messages) {
    for (ChatToolCall& call : message.tool_calls) shorten(call.id, calls++);
    if (message.role == "tool") shorten(message.tool_call_id, results++);
  }
}

// A message with several calls becomes one for each call, followed by its results.
void split_calls(std::vector<ChatMessage>& messages) {
  std::vector<ChatMessage> written;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].tool_calls.size() < 2) {
      written.push_back(std::move(messages[i]));
      continue;
    }
    size_t end = i + 1;
    while (end < messages.size() && messages[end].role == "tool") ++end;
    std::vector<ChatToolCall> calls = std::exchange(messages[i].tool_calls, {});
    std::set<size_t> used;
    for (size_t number = 0; number < calls.size(); ++number) {
      ChatMessage single{.role = "assistant", .content = std::nullopt};
      if (number == 0) single = std::move(messages[i]);
      const std::string id = calls[number].id;
      single.tool_calls.push_back(std::move(calls[number]));
      written.push_back(std::move(single));
      const bool is_last = number + 1 == calls.size();
      for (size_t result = i + 1; result < end; ++result) {
        const bool is_own = is_last || messages[result].tool_call_id == id;
        if (is_own && used.insert(result).second) written.push_back(std::move(messages[result]));
      }
    }
    i = end - 1;
  }
  messages = std::move(written);
}

// The text beside a call becomes a message before it.
void split_call_text(std::vector<ChatMessage>& messages) {
  std::vector<ChatMessage> written;
  for (ChatMessage& message : messages) {
    const bool has_both = !message.tool_calls.empty() && !message.content.value_or("").empty();
    std::vector<ChatToolCall> calls =
        has_both ? std::exchange(message.tool_calls, {}) : std::vector<ChatToolCall>();
    written.push_back(std::move(message));
    if (has_both)
      written.push_back({.role = "assistant", .content = std::nullopt, .tool_calls = std::move(calls)});
  }
  messages = std::move(written);
}

// The text beside a call becomes the end of the thinking before it.
void move_call_text(std::vector<ChatMessage>& messages) {
  for (ChatMessage& message : messages) {
    const bool has_all = !message.tool_calls.empty() && !message.reasoning_content.empty();
    if (!has_all || message.content.value_or("").empty()) continue;
    append_paragraph(message.reasoning_content, *message.content);
    message.content = "";
  }
}

// System messages after the first message become a paragraph before the user's next message, or after the
// user's last one.
void move_late_system(std::vector<ChatMessage>& messages) {
  std::vector<ChatMessage> written;
  std::string waiting;  // for the user's next message
  const auto place_waiting = [&] {
    if (waiting.empty()) return;
    if (written.back().role == "user") {
      append_paragraph(*written.back().content, waiting);
    } else {
      written.push_back({.role = "user", .content = waiting});
    }
    waiting.clear();
  };
  for (ChatMessage& message : messages) {
    const bool is_system = message.role == "system";
    if (is_system && std::all_of(written.begin(), written.end(),
                                 [](const ChatMessage& one) { return one.role == "system"; })) {
      if (written.empty()) {
        written.push_back(std::move(message));
      } else {
        append_paragraph(*written.back().content, *message.content);
      }
    } else if (is_system) {
      append_paragraph(waiting, *message.content);
    } else if (message.role == "user") {
      append_paragraph(waiting, *message.content);
      message.content = std::exchange(waiting, {});
      written.push_back(std::move(message));
    } else {
      place_waiting();
      written.push_back(std::move(message));
    }
  }
  place_waiting();
  messages = std::move(written);
}

// The system message becomes a paragraph before the user's first message.
void move_first_system(std::vector<ChatMessage>& messages) {
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

// Neighbours of one role become one message, and an empty message of the user comes before an assistant's
// first.
void join_neighbours(std::vector<ChatMessage>& messages) {
  std::vector<ChatMessage> written;
  for (ChatMessage& message : messages) {
    const bool is_first = written.empty() || written.back().role == "system";
    if (message.role == "assistant" && is_first) written.push_back({.role = "user", .content = ""});
    const bool is_next = !written.empty() && written.back().role == message.role && message.role != "tool";
    if (is_next) {
      join(written.back(), std::move(message));
    } else {
      written.push_back(std::move(message));
    }
  }
  messages = std::move(written);
}

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
    if (!abilities.shows_call_after_text) split_call_text(messages);
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
