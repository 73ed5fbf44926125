// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/responses_answer.h"

#include <utility>

#include "server/api/answers/answer.h"
#include "server/api/requests/chat_messages.h"

namespace outrider {
namespace {

using PartKind = MessagePart::Kind;

std::string_view status_of(const Completion& completion) {
  return completion.finish_reason == FinishReason::kLength ? "incomplete" : "completed";
}

}  // namespace

ResponsesAnswer::ResponsesAnswer(ResponsesSpec spec, const CallContext& context,
                                 std::vector<Request> requests)
    : MessageAnswer(spec, context, std::move(requests)),
      conversation_(spec.is_stored ? std::move(spec.messages) : std::vector<ChatMessage>()),
      input_(spec.is_stored ? std::move(spec.input) : std::string()),
      echo_(std::move(spec.echo)),
      store_(spec.is_stored ? context.responses : nullptr),
      scope_(context.cache_scope) {}

std::string ResponsesAnswer::response_id() const { return "resp_" + id(); }

std::string ResponsesAnswer::item_id(size_t index) const {
  const PartKind kind = parts()[index].kind;
  return part_id(kind == PartKind::kReasoning ? "rs_" : kind == PartKind::kCall ? "fc_" : "msg_", index);
}

template <typename Function>
void ResponsesAnswer::append_event(std::string& events, std::string_view type, const Function& add_members) {
  begin_event(events, type);
  {
    JsonObject event(events);
    event.text("type", type);
    event.integer("sequence_number", sequence_++);
    add_members(event);
  }
  events += "\n\n";
}

// A part of an item's content.
void ResponsesAnswer::append_content(std::string& out, PartKind kind, std::string_view text) const {
  JsonObject content(out);
  content.text("type", kind == PartKind::kReasoning ? "reasoning_text" : "output_text");
  content.text("text", text);
  if (kind == PartKind::kReasoning) return;
  content.json("annotations", "[]");
  content.json("logprobs", "[]");
}

// An item of the output; before it has a status, its content is empty.
void ResponsesAnswer::append_item(std::string& out, size_t index, std::string_view status) const {
  const MessagePart& part = parts()[index];
  const bool is_begun = status == "in_progress";
  JsonObject item(out);
  item.text("id", item_id(index));
  if (part.kind == PartKind::kCall) {
    item.text("type", "function_call");
    item.text("call_id", call_id(index));
    item.text("name", part.name);
    item.text("arguments", is_begun ? "" : part.text);
  } else {
    item.text("type", part.kind == PartKind::kText ? "message" : "reasoning");
    part.kind == PartKind::kText ? item.text("role", "assistant") : item.json("summary", "[]");
    std::string& out_content = item.key("content") += '[';
    if (!is_begun) append_content(out_content, part.kind, part.text);
    out_content += ']';
  }
  item.text("status", status);
}

std::string ResponsesAnswer::response_object(std::string_view status) const {
  std::string out = "{\"id\":";
  append_json_string(out, response_id());
  out.append(R"(,"object":"response","created_at":)").append(std::to_string(created()));
  out.append(",\"status\":");
  append_json_string(out, status);
  out.append(R"(,"background":false,"error":null,"incomplete_details":)");
  out.append(status == "incomplete" ? R"({"reason":"max_output_tokens"})" : "null");
  out.append(",\"model\":");
  append_json_string(out, spec().model->name);
  out.append(echo_).append(",\"output\":[");
  for (size_t i = 0; status != "in_progress" && i < parts().size(); ++i) {
    if (i > 0) out += ',';
    append_item(out, i, i + 1 == parts().size() ? status : "completed");
  }
  out += "],\"usage\":";
  status == "in_progress" ? void(out += "null") : append_usage_object(out);
  return out += '}';
}

void ResponsesAnswer::append_usage_object(std::string& out) const {
  JsonObject usage(out);
  usage.integer("input_tokens", figures().prompt_tokens);
  usage.json("input_tokens_details", "{\"cached_tokens\":" + std::to_string(figures().cached_tokens) + "}");
  usage.integer("output_tokens", figures().completion_tokens);
  usage.json("output_tokens_details", "{\"reasoning_tokens\":" + std::to_string(reasoning_tokens()) + "}");
  usage.integer("total_tokens", figures().prompt_tokens + figures().completion_tokens);
}

void ResponsesAnswer::begin(std::string& events) {
  for (const std::string_view type : {"response.created", "response.in_progress"}) {
    append_event(events, type,
                 [&](JsonObject& event) { event.json("response", response_object("in_progress")); });
  }
}

void ResponsesAnswer::open_part(size_t index, const MessagePart& part, std::string& events) {
  append_event(events, "response.output_item.added", [&](JsonObject& event) {
    event.integer("output_index", static_cast<int64_t>(index));
    append_item(event.key("item"), index, "in_progress");
  });
  if (part.kind == PartKind::kCall) return;
  append_part_event(events, "response.content_part.added", index,
                    [&](JsonObject& event) { append_content(event.key("part"), part.kind, ""); });
}

// An event about the content of an item.
template <typename Function>
void ResponsesAnswer::append_part_event(std::string& events, std::string_view type, size_t index,
                                        const Function& add_members) {
  append_event(events, type, [&](JsonObject& event) {
    event.text("item_id", item_id(index));
    event.integer("output_index", static_cast<int64_t>(index));
    if (parts()[index].kind != PartKind::kCall) event.integer("content_index", 0);
    add_members(event);
  });
}

void ResponsesAnswer::extend_part(size_t index, const MessagePart& part, std::string_view text,
                                  std::string& events) {
  const std::string_view type = part.kind == PartKind::kCall        ? "response.function_call_arguments.delta"
                                : part.kind == PartKind::kReasoning ? "response.reasoning_text.delta"
                                                                    : "response.output_text.delta";
  append_part_event(events, type, index, [&](JsonObject& event) {
    event.text("delta", text);
    if (part.kind == PartKind::kText) event.json("logprobs", "[]");
  });
}

void ResponsesAnswer::close_part(size_t index, const MessagePart& part, std::string& events) {
  if (part.kind == PartKind::kCall) {
    append_part_event(events, "response.function_call_arguments.done", index, [&](JsonObject& event) {
      event.text("name", part.name);
      event.text("arguments", part.text);
    });
  } else {
    const bool is_text = part.kind == PartKind::kText;
    append_part_event(events, is_text ? "response.output_text.done" : "response.reasoning_text.done", index,
                      [&](JsonObject& event) {
                        event.text("text", part.text);
                        if (is_text) event.json("logprobs", "[]");
                      });
    append_part_event(events, "response.content_part.done", index,
                      [&](JsonObject& event) { append_content(event.key("part"), part.kind, part.text); });
  }
  append_event(events, "response.output_item.done", [&](JsonObject& event) {
    event.integer("output_index", static_cast<int64_t>(index));
    append_item(event.key("item"), index, completion() ? status_of(*completion()) : "completed");
  });
}

void ResponsesAnswer::end(std::string& events) {
  const std::string_view status = status_of(*completion());
  append_event(events, "response." + std::string(status),
               [&](JsonObject& event) { event.json("response", response_object(status)); });
}

std::string ResponsesAnswer::error_events(const ApiError& error) {
  std::string events;
  append_event(events, "error", [&](JsonObject& event) {
    error.code.empty() ? event.json("code", "null") : event.text("code", error.code);
    event.text("message", error.message);
    error.param.empty() ? event.json("param", "null") : event.text("param", error.param);
  });
  return events;
}

std::string ResponsesAnswer::whole_body() const { return response_object(status_of(*completion())); }

// The answer as the next request of the conversation sees it.
ChatMessage ResponsesAnswer::said_message() const {
  ChatMessage message{.role = "assistant", .content = std::nullopt};
  for (size_t i = 0; i < parts().size(); ++i) {
    const MessagePart& part = parts()[i];
    if (part.kind == PartKind::kReasoning) message.reasoning_content += part.text;
    if (part.kind == PartKind::kText) message.content = message.content.value_or("") + part.text;
    if (part.kind == PartKind::kCall)
      message.tool_calls.push_back({call_id(i), part.name, call_arguments_json(part.text)});
  }
  return message;
}

void ResponsesAnswer::on_end() {
  if (store_ == nullptr) return;
  conversation_.push_back(said_message());
  store_->put(scope_, response_id(),
              {.messages = std::move(conversation_), .body = whole_body(), .input = std::move(input_)});
}

}  // namespace outrider
