// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/messages_input.h"

#include <utility>

#include "server/api/requests/chat_messages.h"

namespace outrider {
namespace {

constexpr size_t kMaxBlocks = 1024;
constexpr std::string_view kTextBlocks[] = {"text"};

// The messages that one message of the request becomes.
struct BlockMessages {
  std::vector<ChatMessage> results;
  ChatMessage rest;

  void add_text(const std::string& text) { rest.content = rest.content ? *rest.content + "\n" + text : text; }
};

ApiStatus read_text_block(const RequestField& block, BlockMessages& read) {
  OUTRIDER_TRY(const RequestField text, block.at("text"));
  OUTRIDER_TRY(const std::string value, text.string());
  read.add_text(value);
  return api_ok();
}

ApiStatus read_thinking_block(const RequestField& block, BlockMessages& read) {
  OUTRIDER_TRY(const RequestField text, block.at("thinking"));
  OUTRIDER_TRY(const std::string value, text.string());
  read.rest.reasoning_content += value;
  return api_ok();
}

ApiStatus read_use_block(const RequestField& block, BlockMessages& read) {
  ChatToolCall call;
  OUTRIDER_TRY(const RequestField id, block.at("id"));
  OUTRIDER_TRY(call.id, id.string());
  OUTRIDER_TRY(const RequestField name, block.at("name"));
  OUTRIDER_TRY(call.name, name.string());
  OUTRIDER_TRY(const RequestField input, block.at("input"));
  if (!input.is_object()) return input.expected("an object");
  call.arguments = input.json();
  read.rest.tool_calls.push_back(std::move(call));
  return api_ok();
}

ApiStatus read_result_block(const RequestField& block, BlockMessages& read) {
  ChatMessage result{.role = "tool", .content = ""};
  OUTRIDER_TRY(const RequestField id, block.at("tool_use_id"));
  OUTRIDER_TRY(result.tool_call_id, id.string());
  if (const auto content = block.find("content")) {
    OUTRIDER_TRY(result.content, read_text_parts(*content, kTextBlocks));
  }
  if (const auto failed = block.find("is_error")) {
    OUTRIDER_TRY(const bool is_error, failed->boolean());
    if (is_error) result.content = "Error: " + *result.content;
  }
  read.results.push_back(std::move(result));
  return api_ok();
}

ApiStatus read_block(const RequestField& block, bool is_assistant, BlockMessages& read) {
  constexpr std::string_view kOfUser[] = {"text", "tool_result"};
  constexpr std::string_view kOfAssistant[] = {"text", "tool_use", "thinking", "redacted_thinking"};
  OUTRIDER_TRY(const RequestField type, block.at("type"));
  if (!is_assistant) {
    OUTRIDER_TRY(const int kind, type.one_of(kOfUser));
    return kind == 0 ? read_text_block(block, read) : read_result_block(block, read);
  }
  OUTRIDER_TRY(const int kind, type.one_of(kOfAssistant));
  if (kind == 0) return read_text_block(block, read);
  if (kind == 1) return read_use_block(block, read);
  return kind == 2 ? read_thinking_block(block, read) : api_ok();
}

ApiStatus read_block_message(const RequestField& item, std::vector<ChatMessage>& messages) {
  constexpr std::string_view kRoles[] = {"user", "assistant", "system"};
  OUTRIDER_TRY(const RequestField role_field, item.at("role"));
  OUTRIDER_TRY(const int role, role_field.one_of(kRoles));
  OUTRIDER_TRY(const RequestField content, item.at("content"));
  BlockMessages read{.results = {}, .rest = {.role = std::string(kRoles[role]), .content = std::nullopt}};
  if (content.is_string()) {
    OUTRIDER_TRY(read.rest.content, content.string());
  } else {
    OUTRIDER_TRY(const auto blocks, content.items(kMaxBlocks));
    for (const RequestField& block : blocks) OUTRIDER_RETURN_IF_ERROR(read_block(block, role == 1, read));
  }
  const bool has_rest = read.rest.content || role == 1 || read.results.empty();
  for (ChatMessage& result : read.results) messages.push_back(std::move(result));
  if (!has_rest) return api_ok();
  if (!read.rest.content && role != 1)
    return content.error("expected at least one block of text, found none");
  messages.push_back(std::move(read.rest));
  return api_ok();
}

}  // namespace

ApiResult<std::vector<ChatMessage>> read_block_messages(const RequestField& root, const ApiLimits& limits) {
  std::vector<ChatMessage> messages;
  if (const auto system = root.find("system")) {
    OUTRIDER_TRY(std::string text, read_text_parts(*system, kTextBlocks));
    if (!text.empty()) messages.push_back({.role = "system", .content = std::move(text)});
  }
  OUTRIDER_TRY(const RequestField field, root.at("messages"));
  OUTRIDER_TRY(const auto items, field.items(static_cast<size_t>(limits.messages)));
  if (items.empty()) return field.error("expected at least one message, found none");
  for (const RequestField& item : items) OUTRIDER_RETURN_IF_ERROR(read_block_message(item, messages));
  return messages;
}

}  // namespace outrider
