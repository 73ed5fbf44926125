// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/messages_answer.h"

#include "server/api/answers/stop_reason.h"
#include "server/api/json_object.h"

namespace outrider {
namespace {

using PartKind = MessagePart::Kind;

// Appends one event; `add_members` adds members after its type.
template <typename Function>
void append_event(std::string& events, std::string_view type, const Function& add_members) {
  begin_event(events, type);
  {
    JsonObject event(events);
    event.text("type", type);
    add_members(event);
  }
  events += "\n\n";
}

// An event about one block.
template <typename Function>
void append_block_event(std::string& events, std::string_view type, size_t index,
                        const Function& add_members) {
  append_event(events, type, [&](JsonObject& event) {
    event.integer("index", static_cast<int64_t>(index));
    add_members(event);
  });
}

}  // namespace

// A block of the content; one that is only begun is empty.
void MessagesAnswer::append_block(std::string& out, size_t index, bool is_begun) const {
  const MessagePart& part = parts()[index];
  JsonObject block(out);
  switch (part.kind) {
    case PartKind::kReasoning:
      block.text("type", "thinking");
      block.text("thinking", is_begun ? "" : part.text);
      block.text("signature", "");
      return;
    case PartKind::kText:
      block.text("type", "text");
      block.text("text", is_begun ? "" : part.text);
      return;
    case PartKind::kCall:
      block.text("type", "tool_use");
      block.text("id", call_id(index));
      block.text("name", part.name);
      block.json("input", is_begun || !is_json_object(part.text) ? "{}" : part.text);
      return;
  }
}

// "stop_reason":...,"stop_sequence":...
void MessagesAnswer::append_stop(std::string& out) const {
  const bool is_length = completion()->finish_reason == FinishReason::kLength;
  const std::string stop = matched_stop(spec(), *completion());
  out += "\"stop_reason\":";
  append_json_string(out, is_length       ? "max_tokens"
                          : has_calls()   ? "tool_use"
                          : !stop.empty() ? "stop_sequence"
                                          : "end_turn");
  out += ",\"stop_sequence\":";
  stop.empty() ? void(out += "null") : append_json_string(out, stop);
}

// Cached tokens do not count as input there.
void MessagesAnswer::append_usage_object(std::string& out) const {
  JsonObject usage(out);
  usage.integer("input_tokens", figures().prompt_tokens - figures().cached_tokens);
  usage.integer("cache_creation_input_tokens", 0);
  usage.integer("cache_read_input_tokens", figures().cached_tokens);
  usage.integer("output_tokens", figures().completion_tokens);
}

void MessagesAnswer::append_message(std::string& out) const {
  out += "{\"id\":";
  append_json_string(out, "msg_" + id());
  out += R"(,"type":"message","role":"assistant","model":)";
  append_json_string(out, spec().model->name);
  out += ",\"content\":[";
  for (size_t i = 0; i < parts().size(); ++i) {
    if (i > 0) out += ',';
    append_block(out, i, false);
  }
  out += "],";
  completion() ? append_stop(out) : void(out += R"("stop_reason":null,"stop_sequence":null)");
  out += ",\"usage\":";
  append_usage_object(out);
  out += '}';
}

void MessagesAnswer::begin(std::string& events) {
  append_event(events, "message_start", [&](JsonObject& event) { append_message(event.key("message")); });
}

void MessagesAnswer::open_part(size_t index, const MessagePart&, std::string& events) {
  append_block_event(events, "content_block_start", index,
                     [&](JsonObject& event) { append_block(event.key("content_block"), index, true); });
}

void MessagesAnswer::extend_part(size_t index, const MessagePart& part, std::string_view text,
                                 std::string& events) {
  constexpr std::string_view kTypes[] = {"thinking_delta", "text_delta", "input_json_delta"};
  constexpr std::string_view kMembers[] = {"thinking", "text", "partial_json"};
  const auto kind = static_cast<size_t>(part.kind);
  append_block_event(events, "content_block_delta", index, [&](JsonObject& event) {
    JsonObject delta(event.key("delta"));
    delta.text("type", kTypes[kind]);
    delta.text(kMembers[kind], text);
  });
}

void MessagesAnswer::close_part(size_t index, const MessagePart&, std::string& events) {
  append_block_event(events, "content_block_stop", index, [](JsonObject&) {});
}

void MessagesAnswer::end(std::string& events) {
  append_event(events, "message_delta", [&](JsonObject& event) {
    std::string& delta = event.key("delta") += '{';
    append_stop(delta);
    delta += '}';
    append_usage_object(event.key("usage"));
  });
  append_event(events, "message_stop", [](JsonObject&) {});
}

std::string MessagesAnswer::error_events(const ApiError& error) {
  std::string events;
  begin_event(events, "error");
  return events.append(error_body(error, ErrorForm::kAnthropic)).append("\n\n");
}

std::string MessagesAnswer::whole_body() const {
  std::string out;
  append_message(out);
  return out;
}

}  // namespace outrider
