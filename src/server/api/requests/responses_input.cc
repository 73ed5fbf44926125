// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/responses_input.h"

#include <utility>

#include "base/quote.h"
#include "server/api/json_text.h"
#include "server/api/requests/chat_messages.h"
#include "server/api/requests/responses_tools.h"
#include "server/api/tools/custom_tools.h"

namespace outrider {
namespace {

constexpr std::string_view kTextParts[] = {"input_text", "output_text",  "text",
                                           "refusal",    "summary_text", "reasoning_text"};

// The text of a content: a string, or parts of text. Images are left out.
ApiResult<std::string> read_response_text(const RequestField& field, ResponseInput& input) {
  return read_text_parts(field, kTextParts, &input.ignored);
}

// The message that the next item of the assistant belongs to.
ChatMessage& assistant_message(std::vector<ChatMessage>& messages, bool begins_text) {
  const bool is_open = !messages.empty() && messages.back().role == "assistant" &&
                       !(begins_text && (messages.back().content || !messages.back().tool_calls.empty()));
  if (!is_open) messages.push_back({.role = "assistant", .content = std::nullopt});
  return messages.back();
}

ApiStatus read_message_item(const RequestField& item, ResponseInput& input) {
  std::vector<ChatMessage>& messages = input.messages;
  constexpr std::string_view kRoles[] = {"system", "user", "assistant", "developer"};
  OUTRIDER_TRY(const RequestField role_field, item.at("role"));
  OUTRIDER_TRY(const int role, role_field.one_of(kRoles));
  OUTRIDER_TRY(const RequestField content, item.at("content"));
  OUTRIDER_TRY(std::string text, read_response_text(content, input));
  if (kRoles[role] == "assistant") {
    assistant_message(messages, true).content = std::move(text);
    return api_ok();
  }
  const std::string_view name = kRoles[role] == "developer" ? "system" : kRoles[role];
  messages.push_back({.role = std::string(name), .content = std::move(text)});
  return api_ok();
}

// A call of a member of a namespace may come with both names apart.
ApiResult<std::string> called_name(const RequestField& item) {
  OUTRIDER_TRY(const RequestField name_field, item.at("name"));
  OUTRIDER_TRY(std::string name, name_field.string());
  if (const auto space_field = item.find("namespace")) {
    OUTRIDER_TRY(const std::string space, space_field->string());
    if (!name.starts_with(space)) return space + name;
  }
  return name;
}

ApiResult<std::string> call_id_of(const RequestField& item, bool is_needed) {
  if (!is_needed && !item.find("call_id")) return std::string(kSearchTool);
  OUTRIDER_TRY(const RequestField id, item.at("call_id"));
  return id.string();
}

ApiStatus add_call(ChatToolCall call, ResponseInput& input) {
  assistant_message(input.messages, false).tool_calls.push_back(std::move(call));
  return api_ok();
}

ApiStatus add_result(std::string call_id, std::string text, ResponseInput& input) {
  ChatMessage message{.role = "tool", .content = std::move(text)};
  message.tool_call_id = std::move(call_id);
  input.messages.push_back(std::move(message));
  return api_ok();
}

ApiStatus read_call_item(const RequestField& item, ResponseInput& input) {
  ChatToolCall call;
  OUTRIDER_TRY(call.id, call_id_of(item, true));
  OUTRIDER_TRY(call.name, called_name(item));
  OUTRIDER_TRY(call.arguments, read_arguments(item));
  return add_call(std::move(call), input);
}

ApiStatus read_custom_call(const RequestField& item, ResponseInput& input) {
  ChatToolCall call;
  OUTRIDER_TRY(call.id, call_id_of(item, true));
  OUTRIDER_TRY(call.name, called_name(item));
  OUTRIDER_TRY(const RequestField text_field, item.at("input"));
  OUTRIDER_TRY(const std::string text, text_field.string());
  call.arguments = custom_arguments(text);
  return add_call(std::move(call), input);
}

ApiStatus read_call_output(const RequestField& item, ResponseInput& input) {
  const auto id_field = item.find("call_id");
  OUTRIDER_TRY(std::string id, id_field ? id_field->string() : ApiResult<std::string>(std::string()));
  OUTRIDER_TRY(const RequestField output, item.at("output"));
  OUTRIDER_TRY(std::string text, read_response_text(output, input));
  return add_result(std::move(id), std::move(text), input);
}

ApiStatus read_search_call(const RequestField& item, ResponseInput& input) {
  ChatToolCall call{.id = {}, .name = std::string(kSearchTool), .arguments = {}};
  OUTRIDER_TRY(call.id, call_id_of(item, false));
  OUTRIDER_TRY(call.arguments, read_arguments(item));
  return add_call(std::move(call), input);
}

// The tools that a search found may be called from here on; the model sees them as the result, too.
ApiStatus read_search_output(const RequestField& item, ResponseInput& input) {
  OUTRIDER_TRY(std::string id, call_id_of(item, false));
  OUTRIDER_TRY(const RequestField tools, item.at("tools"));
  input.tools.push_back(tools);
  return add_result(std::move(id), tools.json(), input);
}

ApiStatus read_additional_tools(const RequestField& item, ResponseInput& input) {
  OUTRIDER_TRY(const RequestField tools, item.at("tools"));
  input.tools.push_back(tools);
  return api_ok();
}

// A summary stands for reasoning without a text.
ApiStatus read_reasoning_item(const RequestField& item, ResponseInput& input) {
  std::string text;
  for (const std::string_view key : {"content", "summary"}) {
    const auto field = item.find(key);
    if (!field || !text.empty()) continue;
    OUTRIDER_TRY(text, read_response_text(*field, input));
  }
  if (!text.empty()) assistant_message(input.messages, true).reasoning_content = std::move(text);
  return api_ok();
}

// OpenAI's own tools, servers and models leave such items in a conversation.
ApiStatus leave_out(const RequestField& item, ResponseInput& input) {
  input.ignored.push_back(item.path());
  return api_ok();
}

struct ItemRule {
  std::string_view type;
  ApiStatus (*read)(const RequestField& item, ResponseInput& input);
};
constexpr ItemRule kItems[] = {{"message", read_message_item},
                               {"function_call", read_call_item},
                               {"function_call_output", read_call_output},
                               {"reasoning", read_reasoning_item},
                               {"custom_tool_call", read_custom_call},
                               {"custom_tool_call_output", read_call_output},
                               {"tool_search_call", read_search_call},
                               {"tool_search_output", read_search_output},
                               {"additional_tools", read_additional_tools},
                               {"apply_patch_call", leave_out},
                               {"apply_patch_call_output", leave_out},
                               {"code_interpreter_call", leave_out},
                               {"compaction", leave_out},
                               {"compaction_trigger", leave_out},
                               {"computer_call", leave_out},
                               {"computer_call_output", leave_out},
                               {"configuration_update", leave_out},
                               {"file_search_call", leave_out},
                               {"image_generation_call", leave_out},
                               {"local_shell_call", leave_out},
                               {"local_shell_call_output", leave_out},
                               {"mcp_approval_request", leave_out},
                               {"mcp_approval_response", leave_out},
                               {"mcp_call", leave_out},
                               {"mcp_list_tools", leave_out},
                               {"program", leave_out},
                               {"program_output", leave_out},
                               {"shell_call", leave_out},
                               {"shell_call_output", leave_out},
                               {"web_search_call", leave_out}};

ApiStatus read_item(const RequestField& item, ResponseInput& input) {
  const auto type_field = item.find("type");
  if (!type_field && item.find("role")) return read_message_item(item, input);
  OUTRIDER_TRY(const std::string type,
               type_field ? type_field->string() : ApiResult<std::string>("item_reference"));
  for (const ItemRule& rule : kItems) {
    if (rule.type == type) return rule.read(item, input);
  }
  if (type == "item_reference")
    return item.error("references to items are not supported here; send the item", "unsupported_parameter");
  return type_field->error("no such item is known here: " + quote(type), "unsupported_parameter");
}

}  // namespace

ApiStatus read_response_input(const RequestField& field, const ApiLimits& limits, ResponseInput& input) {
  if (field.is_string()) {
    OUTRIDER_TRY(std::string text, field.string());
    input.messages.push_back({.role = "user", .content = std::move(text)});
    return api_ok();
  }
  if (!field.is_array()) return field.expected("a string or an array of items");
  OUTRIDER_TRY(const auto items, field.items(static_cast<size_t>(limits.messages)));
  for (const RequestField& item : items) OUTRIDER_RETURN_IF_ERROR(read_item(item, input));
  return api_ok();
}

std::string input_items_json(const RequestField& field) {
  if (field.is_array()) return field.json();
  return R"([{"type":"message","role":"user","content":[{"type":"input_text","text":)" + field.json() +
         "}]}]";
}

}  // namespace outrider
