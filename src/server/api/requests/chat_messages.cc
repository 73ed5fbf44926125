// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/chat_messages.h"

#include <algorithm>
#include <utility>

#include "base/quote.h"
#include "server/api/field_rules.h"
#include "server/api/json_text.h"
#include "server/api/tools/custom_tools.h"

namespace outrider {
namespace {

constexpr size_t kMaxParts = 1024;
constexpr size_t kMaxCalls = 128;

// The type of a part; empty if it has none.
ApiResult<std::string> part_type(const RequestField& part) {
  const auto type = part.is_object() ? part.find("type") : std::nullopt;
  return type && type->is_string() ? type->string() : std::string();
}

// Reads a part of a content: {"type": "text", "text": ...}.
ApiResult<std::string> read_part(const RequestField& part, std::span<const std::string_view> types) {
  if (part.is_string()) return part.string();
  OUTRIDER_TRY(const RequestField type, part.at("type"));
  OUTRIDER_TRY(const std::string name, type.string());
  if (std::find(types.begin(), types.end(), name) == types.end()) {
    return type.error("expected text, found " + printable(name) + "; this model reads text alone",
                      "unsupported_parameter");
  }
  OUTRIDER_TRY(const RequestField text, part.at(name == "refusal" ? name : "text"));
  return text.string();
}

// Thinking may be a part of the content: a text, or parts of text.
ApiStatus read_thinking_part(const RequestField& part, ChatMessage& message) {
  constexpr std::string_view kTypes[] = {"text"};
  OUTRIDER_TRY(const RequestField thinking, part.at("thinking"));
  OUTRIDER_TRY(const std::string text, read_text_parts(thinking, kTypes));
  message.reasoning_content += text;
  return api_ok();
}

ApiStatus read_content(const RequestField& field, ChatMessage& message, std::vector<std::string>& left_out) {
  constexpr std::string_view kTypes[] = {"text", "refusal"};
  if (!field.is_array()) {
    OUTRIDER_TRY(message.content, read_text_parts(field, kTypes));
    return api_ok();
  }
  OUTRIDER_TRY(const auto parts, field.items(kMaxParts));
  std::vector<std::string> texts;
  for (const RequestField& part : parts) {
    OUTRIDER_TRY(const std::string type, part_type(part));
    if (is_image_part(part)) {
      left_out.push_back(part.path());
    } else if (type == "thinking") {
      OUTRIDER_RETURN_IF_ERROR(read_thinking_part(part, message));
    } else {
      OUTRIDER_TRY(std::string text, read_part(part, kTypes));
      texts.push_back(std::move(text));
    }
  }
  message.content = "";
  for (const std::string& text : texts)
    message.content->append(&text == &texts.front() ? "" : "\n").append(text);
  return api_ok();
}

ApiStatus read_role(const RequestField& field, ChatMessage& message) {
  constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool", "developer"};
  OUTRIDER_TRY(const int role, field.one_of(kRoles));
  message.role = kRoles[role] == "developer" ? "system" : kRoles[role];
  return api_ok();
}

ApiResult<ChatToolCall> read_call(const RequestField& field) {
  constexpr std::string_view kTypes[] = {"function", "custom"};
  ChatToolCall call;
  if (const auto id = field.find("id")) {
    OUTRIDER_TRY(call.id, id->string());
  }
  int kind = 0;
  if (const auto type = field.find("type")) {
    OUTRIDER_TRY(kind, type->one_of(kTypes));
  }
  OUTRIDER_TRY(const RequestField holder, field.at(kTypes[kind]));
  OUTRIDER_TRY(const RequestField name, holder.at("name"));
  OUTRIDER_TRY(call.name, name.string());
  if (kind == 1) {
    OUTRIDER_TRY(const RequestField input_field, holder.at("input"));
    OUTRIDER_TRY(const std::string input, input_field.string());
    call.arguments = custom_arguments(input);
  } else {
    OUTRIDER_TRY(call.arguments, read_arguments(holder));
  }
  return call;
}

ApiStatus read_calls(const RequestField& field, ChatMessage& message) {
  OUTRIDER_TRY(const auto items, field.items(kMaxCalls));
  for (const RequestField& item : items) {
    OUTRIDER_TRY(ChatToolCall call, read_call(item));
    message.tool_calls.push_back(std::move(call));
  }
  return api_ok();
}

template <std::string ChatMessage::*kMember>
ApiStatus read_text(const RequestField& field, ChatMessage& message) {
  OUTRIDER_TRY(message.*kMember, field.string());
  return api_ok();
}

constexpr FieldRule<ChatMessage> kMessageRules[] = {
    {"role", read_role},
    {"name", read_text<&ChatMessage::name>},
    {"tool_calls", read_calls},
    {"tool_call_id", read_text<&ChatMessage::tool_call_id>},
    {"reasoning_content", read_text<&ChatMessage::reasoning_content>},
    {"reasoning", read_text<&ChatMessage::reasoning_content>},
    {"thinking", read_text<&ChatMessage::reasoning_content>},
    {"tool_name", read_text<&ChatMessage::name>},  // Ollama's
};
constexpr UnsupportedField kUnsupportedInMessages[] = {{"audio", ""}, {"function_call", ""}};

ApiStatus read_member(const RequestField& member, ChatMessage& message, std::vector<std::string>& ignored) {
  if (member.key() == "content") return read_content(member, message, ignored);
  if (const auto* rule = find_rule<ChatMessage>(kMessageRules, member.key()))
    return rule->read(member, message);
  for (const UnsupportedField& rule : kUnsupportedInMessages) {
    if (rule.name == member.key()) return check_unsupported(member, rule);
  }
  ignored.push_back(member.path());
  return api_ok();
}

}  // namespace

bool is_image_part(const RequestField& part) {
  constexpr std::string_view kImages[] = {"image", "image_url", "input_image"};
  const ApiResult<std::string> type = part_type(part);
  return type.ok() && std::find(std::begin(kImages), std::end(kImages), *type) != std::end(kImages);
}

ApiResult<std::string> read_text_parts(const RequestField& field, std::span<const std::string_view> types,
                                       std::vector<std::string>* left_out) {
  if (field.is_string()) return field.string();
  if (!field.is_array()) return field.expected("a string or an array of parts");
  OUTRIDER_TRY(const auto parts, field.items(kMaxParts));
  std::string joined;
  bool is_first = true;
  for (const RequestField& part : parts) {
    if (left_out != nullptr && is_image_part(part)) {
      left_out->push_back(part.path());
      continue;
    }
    OUTRIDER_TRY(const std::string text, read_part(part, types));
    joined.append(std::exchange(is_first, false) ? "" : "\n").append(text);
  }
  return joined;
}

std::string call_arguments_json(const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return "{}";
  simdjson::dom::parser parser;
  constexpr size_t kDepth = 64;
  if (parser.allocate(text.size(), kDepth) == simdjson::SUCCESS) {
    const auto document = parser.parse(text.data(), text.size());
    if (document.error() == simdjson::SUCCESS && document.value_unsafe().is_object()) return text;
  }
  std::string quoted;
  append_json_string(quoted, text);
  return quoted;
}

ApiResult<std::string> read_arguments(const RequestField& function) {
  const auto arguments = function.find("arguments");
  if (!arguments) return std::string("{}");
  if (arguments->is_object()) return arguments->json();
  OUTRIDER_TRY(const std::string text, arguments->string());
  return call_arguments_json(text);
}

ApiResult<ReadMessages> read_messages(const RequestField& field, int max) {
  OUTRIDER_TRY(const auto items, field.items(static_cast<size_t>(max)));
  if (items.empty()) return field.error("expected at least one message, found none");
  ReadMessages read;
  for (const RequestField& item : items) {
    ChatMessage message;
    OUTRIDER_TRY(const auto members, item.members());
    for (const RequestField& member : members) {
      if (!member.is_null()) OUTRIDER_RETURN_IF_ERROR(read_member(member, message, read.ignored));
    }
    OUTRIDER_RETURN_IF_ERROR(item.at("role"));
    if (!message.content && message.role != "assistant") return item.at("content").error();
    read.messages.push_back(std::move(message));
  }
  return read;
}

}  // namespace outrider
