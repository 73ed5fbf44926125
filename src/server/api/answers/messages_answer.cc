// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/messages_answer.h"

#include "server/api/answers/stop_reason.h"
#include "server/api/json_text.h"

namespace outrider {
namespace {

using PartKind = MessagePart::Kind;

// Appends one event; `write_members` adds members after its type.
template <typename Function>
void append_event(std::string& events, std::string_view type, const Function& write_members) {
  JsonWriter json = begin_event(events, type);
  json.begin_object().member("type", type);
  write_members(json);
  end_event(events, json);
}

// An event about one block.
template <typename Function>
void append_block_event(std::string& events, std::string_view type, size_t index,
                        const Function& write_members) {
  append_event(events, type, [&](JsonWriter& json) {
    json.member("index", index);
    write_members(json);
  });
}

}  // namespace

// A block of the content; one that is only begun is empty.
void MessagesAnswer::write_block(JsonWriter& json, size_t index, bool is_begun) const {
  const MessagePart& part = parts()[index];
  const std::string_view text = is_begun ? std::string_view() : part.text;
  json.begin_object();
  switch (part.kind) {
    case PartKind::kReasoning:
      json.member("type", "thinking").member("thinking", text).member("signature", "");
      break;
    case PartKind::kText:
      json.member("type", "text").member("text", text);
      break;
    case PartKind::kCall:
      json.member("type", "tool_use").member("id", call_id(index)).member("name", part.name);
      json.key("input").json(is_begun || !is_json_object(part.text) ? "{}" : part.text);
  }
  json.end_object();
}

void MessagesAnswer::write_stop(JsonWriter& json) const {
  const bool is_length = completion()->finish_reason == FinishReason::kLength;
  const std::string stop = matched_stop(spec(), *completion());
  json.member("stop_reason", is_length       ? "max_tokens"
                             : has_calls()   ? "tool_use"
                             : !stop.empty() ? "stop_sequence"
                                             : "end_turn");
  json.member("stop_sequence", text_or_null(stop));
}

// Cached tokens do not count as input there.
void MessagesAnswer::write_usage_object(JsonWriter& json) const {
  json.key("usage").begin_object();
  json.member("input_tokens", figures().prompt_tokens - figures().cached_tokens);
  json.member("cache_creation_input_tokens", 0);
  json.member("cache_read_input_tokens", figures().cached_tokens);
  json.member("output_tokens", figures().completion_tokens);
  if (spec().has_prediction) write_prediction_counts(json, figures());
  json.end_object();
}

void MessagesAnswer::write_message(JsonWriter& json) const {
  json.begin_object().member("id", "msg_" + id()).member("type", "message").member("role", "assistant");
  json.member("model", spec().model->name).key("content").begin_array();
  for (size_t i = 0; i < parts().size(); ++i) write_block(json, i, false);
  json.end_array();
  completion() ? write_stop(json) : void(json.key("stop_reason").null().key("stop_sequence").null());
  write_usage_object(json);
  json.end_object();
}

void MessagesAnswer::begin(std::string& events) {
  append_event(events, "message_start", [&](JsonWriter& json) { write_message(json.key("message")); });
}

void MessagesAnswer::open_part(size_t index, const MessagePart&, std::string& events) {
  append_block_event(events, "content_block_start", index,
                     [&](JsonWriter& json) { write_block(json.key("content_block"), index, true); });
}

void MessagesAnswer::extend_part(size_t index, const MessagePart& part, std::string_view text,
                                 std::string& events) {
  constexpr std::string_view kTypes[] = {"thinking_delta", "text_delta", "input_json_delta"};
  constexpr std::string_view kMembers[] = {"thinking", "text", "partial_json"};
  const auto kind = static_cast<size_t>(part.kind);
  append_block_event(events, "content_block_delta", index, [&](JsonWriter& json) {
    json.key("delta").begin_object().member("type", kTypes[kind]).member(kMembers[kind], text).end_object();
  });
}

void MessagesAnswer::close_part(size_t index, const MessagePart&, std::string& events) {
  append_block_event(events, "content_block_stop", index, [](JsonWriter&) {});
}

void MessagesAnswer::end(std::string& events) {
  append_event(events, "message_delta", [&](JsonWriter& json) {
    write_stop(json.key("delta").begin_object());
    json.end_object();
    write_usage_object(json);
  });
  append_event(events, "message_stop", [](JsonWriter&) {});
}

std::string MessagesAnswer::error_events(const ApiError& error) {
  std::string events;
  begin_event(events, "error");
  return events.append(error_body(error, ErrorForm::kAnthropic)).append("\n\n");
}

std::string MessagesAnswer::whole_body() const {
  std::string out;
  JsonWriter json(out);
  write_message(json);
  return out;
}

}  // namespace outrider
