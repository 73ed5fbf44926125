// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/messages_input.h"

#include <utility>

#include "base/quote.h"
#include "server/api/requests/chat_messages.h"

namespace outrider {
namespace {

constexpr size_t kMaxBlocks = 1024;
constexpr std::string_view kTextBlocks[] = {"text"};

// The messages that one message of the request becomes.
struct BlockMessages {
  std::vector<ChatMessage> results;
  ChatMessage rest;
  std::vector<std::string>* ignored;  // paths of blocks that are left out
  bool has_image = false;

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
    OUTRIDER_TRY(result.content, read_text_parts(*content, kTextBlocks, read.ignored));
  }
  if (const auto failed = block.find("is_error")) {
    OUTRIDER_TRY(const bool is_error, failed->boolean());
    if (is_error) result.content = "Error: " + *result.content;
  }
  read.results.push_back(std::move(result));
  return api_ok();
}

// A document with its text; others are files.
ApiStatus read_document_block(const RequestField& block, BlockMessages& read) {
  OUTRIDER_TRY(const RequestField source, block.at("source"));
  OUTRIDER_TRY(const RequestField type, source.at("type"));
  OUTRIDER_TRY(const std::string kind, type.string());
  const bool is_text = kind == "text" || kind == "content";
  if (!is_text) return type.error("expected text; this model reads text alone", "unsupported_parameter");
  OUTRIDER_TRY(const RequestField data, source.at(kind == "text" ? "data" : "content"));
  OUTRIDER_TRY(const std::string text, read_text_parts(data, kTextBlocks));
  read.add_text(text);
  return api_ok();
}

ApiStatus read_search_block(const RequestField& block, BlockMessages& read) {
  OUTRIDER_TRY(const RequestField content, block.at("content"));
  OUTRIDER_TRY(const std::string text, read_text_parts(content, kTextBlocks));
  read.add_text(text);
  return api_ok();
}

// Anthropic's servers and their tools leave such blocks in a conversation.
ApiStatus leave_out_block(const RequestField& block, BlockMessages& read) {
  read.ignored->push_back(block.path());
  return api_ok();
}

// A message may consist of images alone.
ApiStatus leave_out_image(const RequestField& block, BlockMessages& read) {
  read.has_image = true;
  return leave_out_block(block, read);
}

struct BlockRule {
  std::string_view type;
  std::string_view role;  // empty: any
  ApiStatus (*read)(const RequestField& block, BlockMessages& read);
};
constexpr BlockRule kBlocks[] = {{"text", "", read_text_block},
                                 {"image", "", leave_out_image},
                                 {"tool_result", "user", read_result_block},
                                 {"document", "user", read_document_block},
                                 {"search_result", "user", read_search_block},
                                 {"tool_use", "assistant", read_use_block},
                                 {"thinking", "assistant", read_thinking_block},
                                 {"redacted_thinking", "assistant", leave_out_block},
                                 {"advisor_tool_result", "", leave_out_block},
                                 {"bash_code_execution_tool_result", "", leave_out_block},
                                 {"code_execution_tool_result", "", leave_out_block},
                                 {"compaction", "", leave_out_block},
                                 {"fallback", "", leave_out_block},
                                 {"mcp_tool_listing", "", leave_out_block},
                                 {"mcp_tool_result", "", leave_out_block},
                                 {"mcp_tool_use", "", leave_out_block},
                                 {"server_tool_use", "", leave_out_block},
                                 {"text_editor_code_execution_tool_result", "", leave_out_block},
                                 {"tool_addition", "", leave_out_block},
                                 {"tool_removal", "", leave_out_block},
                                 {"tool_search_tool_result", "", leave_out_block},
                                 {"web_fetch_tool_result", "", leave_out_block},
                                 {"web_search_tool_result", "", leave_out_block}};

ApiStatus read_block(const RequestField& block, std::string_view role, BlockMessages& read) {
  OUTRIDER_TRY(const RequestField type, block.at("type"));
  OUTRIDER_TRY(const std::string name, type.string());
  for (const BlockRule& rule : kBlocks) {
    if (rule.type == name && (rule.role.empty() || rule.role == role)) return rule.read(block, read);
  }
  return type.error("expected text, tools, results or thinking, found " + quote(name) + " of the role " +
                        std::string(role) + "; this model reads text alone",
                    "unsupported_parameter");
}

ApiStatus read_block_message(const RequestField& item, std::vector<ChatMessage>& messages,
                             std::vector<std::string>& ignored) {
  constexpr std::string_view kRoles[] = {"user", "assistant", "system"};
  OUTRIDER_TRY(const RequestField role_field, item.at("role"));
  OUTRIDER_TRY(const int role, role_field.one_of(kRoles));
  OUTRIDER_TRY(const RequestField content, item.at("content"));
  BlockMessages read{.results = {},
                     .rest = {.role = std::string(kRoles[role]), .content = std::nullopt},
                     .ignored = &ignored};
  if (content.is_string()) {
    OUTRIDER_TRY(read.rest.content, content.string());
  } else {
    OUTRIDER_TRY(const auto blocks, content.items(kMaxBlocks));
    for (const RequestField& block : blocks) OUTRIDER_RETURN_IF_ERROR(read_block(block, kRoles[role], read));
  }
  if (!read.rest.content && read.has_image) read.rest.content = "";
  const bool has_rest = read.rest.content || role == 1 || read.results.empty();
  for (ChatMessage& result : read.results) messages.push_back(std::move(result));
  if (!has_rest) return api_ok();
  if (!read.rest.content && role != 1)
    return content.error("expected at least one block of text, found none");
  messages.push_back(std::move(read.rest));
  return api_ok();
}

}  // namespace

ApiResult<std::vector<ChatMessage>> read_block_messages(const RequestField& root, const ApiLimits& limits,
                                                        std::vector<std::string>& ignored) {
  std::vector<ChatMessage> messages;
  if (const auto system = root.find("system")) {
    OUTRIDER_TRY(std::string text, read_text_parts(*system, kTextBlocks));
    if (!text.empty()) messages.push_back({.role = "system", .content = std::move(text)});
  }
  OUTRIDER_TRY(const RequestField field, root.at("messages"));
  OUTRIDER_TRY(const auto items, field.items(static_cast<size_t>(limits.messages)));
  if (items.empty()) return field.error("expected at least one message, found none");
  for (const RequestField& item : items)
    OUTRIDER_RETURN_IF_ERROR(read_block_message(item, messages, ignored));
  return messages;
}

}  // namespace outrider
