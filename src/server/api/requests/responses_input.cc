// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/responses_input.h"

#include <utility>

#include "server/api/json_text.h"
#include "server/api/requests/chat_messages.h"

namespace outrider {
namespace {

constexpr std::string_view kTextParts[] = {"input_text", "output_text",  "text",
                                           "refusal",    "summary_text", "reasoning_text"};

// The text of a content: a string, or parts of text.
ApiResult<std::string> read_response_text(const RequestField& field) {
  return read_text_parts(field, kTextParts);
}

// The message that the next item of the assistant belongs to.
ChatMessage& assistant_message(std::vector<ChatMessage>& messages, bool begins_text) {
  const bool is_open = !messages.empty() && messages.back().role == "assistant" &&
                       !(begins_text && (messages.back().content || !messages.back().tool_calls.empty()));
  if (!is_open) messages.push_back({.role = "assistant", .content = std::nullopt});
  return messages.back();
}

ApiStatus read_message_item(const RequestField& item, std::vector<ChatMessage>& messages) {
  constexpr std::string_view kRoles[] = {"system", "user", "assistant", "developer"};
  OUTRIDER_TRY(const RequestField role_field, item.at("role"));
  OUTRIDER_TRY(const int role, role_field.one_of(kRoles));
  OUTRIDER_TRY(const RequestField content, item.at("content"));
  OUTRIDER_TRY(std::string text, read_response_text(content));
  if (kRoles[role] == "assistant") {
    assistant_message(messages, true).content = std::move(text);
    return api_ok();
  }
  const std::string_view name = kRoles[role] == "developer" ? "system" : kRoles[role];
  messages.push_back({.role = std::string(name), .content = std::move(text)});
  return api_ok();
}

ApiStatus read_call_item(const RequestField& item, std::vector<ChatMessage>& messages) {
  ChatToolCall call;
  OUTRIDER_TRY(const RequestField id, item.at("call_id"));
  OUTRIDER_TRY(call.id, id.string());
  OUTRIDER_TRY(const RequestField name, item.at("name"));
  OUTRIDER_TRY(call.name, name.string());
  OUTRIDER_TRY(call.arguments, read_arguments(item));
  assistant_message(messages, false).tool_calls.push_back(std::move(call));
  return api_ok();
}

ApiStatus read_call_output(const RequestField& item, std::vector<ChatMessage>& messages) {
  ChatMessage message{.role = "tool", .content = std::nullopt};
  OUTRIDER_TRY(const RequestField id, item.at("call_id"));
  OUTRIDER_TRY(message.tool_call_id, id.string());
  OUTRIDER_TRY(const RequestField output, item.at("output"));
  OUTRIDER_TRY(message.content, read_response_text(output));
  messages.push_back(std::move(message));
  return api_ok();
}

// A summary stands for reasoning without a text.
ApiStatus read_reasoning_item(const RequestField& item, std::vector<ChatMessage>& messages) {
  std::string text;
  for (const std::string_view key : {"content", "summary"}) {
    const auto field = item.find(key);
    if (!field || !text.empty()) continue;
    OUTRIDER_TRY(text, read_response_text(*field));
  }
  if (!text.empty()) assistant_message(messages, true).reasoning_content = std::move(text);
  return api_ok();
}

ApiStatus read_item(const RequestField& item, std::vector<ChatMessage>& messages) {
  constexpr std::string_view kTypes[] = {"message", "function_call", "function_call_output", "reasoning"};
  constexpr ApiStatus (*kReaders[])(const RequestField&, std::vector<ChatMessage>&) = {
      read_message_item, read_call_item, read_call_output, read_reasoning_item};
  const auto type = item.find("type");
  if (!type) return read_message_item(item, messages);
  OUTRIDER_TRY(const int kind, type->one_of(kTypes));
  return kReaders[kind](item, messages);
}

}  // namespace

ApiStatus read_response_input(const RequestField& field, const ApiLimits& limits,
                              std::vector<ChatMessage>& messages) {
  if (field.is_string()) {
    OUTRIDER_TRY(std::string text, field.string());
    messages.push_back({.role = "user", .content = std::move(text)});
    return api_ok();
  }
  if (!field.is_array()) return field.expected("a string or an array of items");
  OUTRIDER_TRY(const auto items, field.items(static_cast<size_t>(limits.messages)));
  for (const RequestField& item : items) OUTRIDER_RETURN_IF_ERROR(read_item(item, messages));
  return api_ok();
}

std::string input_items_json(const RequestField& field) {
  if (field.is_array()) return field.json();
  return R"([{"type":"message","role":"user","content":[{"type":"input_text","text":)" + field.json() +
         "}]}]";
}

}  // namespace outrider
