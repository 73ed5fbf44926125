// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/history.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "server/api/json_text.h"

namespace outrider {
namespace {

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
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char byte : id) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
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

}  // namespace

void append_paragraph(std::string& text, const std::string& paragraph) {
  if (!text.empty() && !paragraph.empty()) text += "\n\n";
  text += paragraph;
}

void write_lone_results(std::vector<ChatMessage>& messages) {
  messages = ResultWriter(true).rewrite(std::move(messages));
}

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

void move_call_text(std::vector<ChatMessage>& messages) {
  for (ChatMessage& message : messages) {
    const bool has_all = !message.tool_calls.empty() && !message.reasoning_content.empty();
    if (!has_all || message.content.value_or("").empty()) continue;
    append_paragraph(message.reasoning_content, *message.content);
    message.content = "";
  }
}

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

}  // namespace outrider
