// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/responses_answer.h"

#include <utility>

#include "server/api/answers/answer.h"
#include "server/api/json_text.h"
#include "server/api/requests/chat_messages.h"
#include "server/api/tools/custom_tools.h"

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
      tool_kinds_(std::move(spec.tool_kinds)),
      store_(spec.is_stored ? context.responses : nullptr),
      scope_(context.cache_scope) {}

std::string ResponsesAnswer::response_id() const { return "resp_" + id(); }

ResponseToolKind ResponsesAnswer::tool_kind(size_t index) const {
  const auto known = tool_kinds_.find(parts()[index].name);
  return known == tool_kinds_.end() ? ResponseToolKind::kFunction : known->second;
}

const CallItemForm& ResponsesAnswer::item_form(size_t index) const {
  static constexpr CallItemForm kForms[] = {
      {"fc_", "function_call"}, {"ctc_", "custom_tool_call"}, {"tsc_", "tool_search_call"}};
  return kForms[static_cast<size_t>(tool_kind(index))];
}

std::string ResponsesAnswer::item_id(size_t index) const {
  const PartKind kind = parts()[index].kind;
  if (kind == PartKind::kCall) return part_id(item_form(index).id_prefix, index);
  return part_id(kind == PartKind::kReasoning ? "rs_" : "msg_", index);
}

template <typename Function>
void ResponsesAnswer::append_event(std::string& events, std::string_view type,
                                   const Function& write_members) {
  JsonWriter json = begin_event(events, type);
  json.begin_object().member("type", type).member("sequence_number", sequence_++);
  write_members(json);
  end_event(events, json);
}

// A part of an item's content.
void ResponsesAnswer::write_content(JsonWriter& json, PartKind kind, std::string_view text) const {
  const bool is_reasoning = kind == PartKind::kReasoning;
  json.begin_object().member("type", is_reasoning ? "reasoning_text" : "output_text").member("text", text);
  if (!is_reasoning) json.key("annotations").json("[]").key("logprobs").json("[]");
  json.end_object();
}

// The name and the input of a call; a search has neither a name nor arguments as text.
void ResponsesAnswer::write_call(JsonWriter& json, size_t index, const std::string& arguments) const {
  switch (tool_kind(index)) {
    case ResponseToolKind::kFunction:
      json.member("name", parts()[index].name).member("arguments", arguments);
      break;
    case ResponseToolKind::kCustom:
      json.member("name", parts()[index].name).member("input", custom_input(arguments));
      break;
    case ResponseToolKind::kSearch:
      json.member("execution", "client").key("arguments");
      json.json(is_json_object(arguments) ? arguments : "{}");
  }
}

// An item of the output; before it has a status, its content is empty.
void ResponsesAnswer::write_item(JsonWriter& json, size_t index, std::string_view status) const {
  const MessagePart& part = parts()[index];
  const bool is_begun = status == "in_progress";
  json.begin_object().member("id", item_id(index));
  if (part.kind == PartKind::kCall) {
    json.member("type", item_form(index).type).member("call_id", call_id(index));
    write_call(json, index, is_begun ? "" : part.text);
  } else {
    const bool is_text = part.kind == PartKind::kText;
    json.member("type", is_text ? "message" : "reasoning");
    is_text ? json.member("role", "assistant") : json.key("summary").json("[]");
    json.key("content").begin_array();
    if (!is_begun) write_content(json, part.kind, part.text);
    json.end_array();
  }
  json.member("status", status).end_object();
}

void ResponsesAnswer::write_response(JsonWriter& json, std::string_view status) const {
  const bool is_begun = status == "in_progress";
  json.begin_object()
      .member("id", response_id())
      .member("object", "response")
      .member("created_at", created());
  json.member("status", status).member("background", false).key("error").null();
  json.key("incomplete_details").json(status == "incomplete" ? R"({"reason":"max_output_tokens"})" : "null");
  json.member("model", spec().model->name).json(echo_).key("output").begin_array();
  for (size_t i = 0; !is_begun && i < parts().size(); ++i)
    write_item(json, i, i + 1 == parts().size() ? status : "completed");
  json.end_array().key("usage");
  is_begun ? void(json.null()) : write_usage_object(json);
  json.end_object();
}

void ResponsesAnswer::write_usage_object(JsonWriter& json) const {
  const ChoiceFigures& count = figures();
  json.begin_object().member("input_tokens", count.prompt_tokens);
  json.key("input_tokens_details").begin_object().member("cached_tokens", count.cached_tokens).end_object();
  json.member("output_tokens", count.completion_tokens);
  json.key("output_tokens_details").begin_object();
  json.member("reasoning_tokens", reasoning_tokens());
  if (spec().has_prediction) write_prediction_counts(json, count);
  json.end_object();
  json.member("total_tokens", count.prompt_tokens + count.completion_tokens).end_object();
}

void ResponsesAnswer::begin(std::string& events) {
  for (const std::string_view type : {"response.created", "response.in_progress"}) {
    append_event(events, type,
                 [&](JsonWriter& json) { write_response(json.key("response"), "in_progress"); });
  }
}

void ResponsesAnswer::open_part(size_t index, const MessagePart& part, std::string& events) {
  append_event(events, "response.output_item.added", [&](JsonWriter& json) {
    json.member("output_index", index);
    write_item(json.key("item"), index, "in_progress");
  });
  if (part.kind == PartKind::kCall) return;
  append_part_event(events, "response.content_part.added", index,
                    [&](JsonWriter& json) { write_content(json.key("part"), part.kind, ""); });
}

// An event about the content of an item.
template <typename Function>
void ResponsesAnswer::append_part_event(std::string& events, std::string_view type, size_t index,
                                        const Function& write_members) {
  append_event(events, type, [&](JsonWriter& json) {
    json.member("item_id", item_id(index));
    json.member("output_index", index);
    if (parts()[index].kind != PartKind::kCall) json.member("content_index", 0);
    write_members(json);
  });
}

void ResponsesAnswer::extend_part(size_t index, const MessagePart& part, std::string_view text,
                                  std::string& events) {
  // The input of other tools is known when the arguments are complete.
  if (part.kind == PartKind::kCall && tool_kind(index) != ResponseToolKind::kFunction) return;
  const std::string_view type = part.kind == PartKind::kCall        ? "response.function_call_arguments.delta"
                                : part.kind == PartKind::kReasoning ? "response.reasoning_text.delta"
                                                                    : "response.output_text.delta";
  append_part_event(events, type, index, [&](JsonWriter& json) {
    json.member("delta", text);
    if (part.kind == PartKind::kText) json.key("logprobs").json("[]");
  });
}

void ResponsesAnswer::close_call(size_t index, const MessagePart& part, std::string& events) {
  const ResponseToolKind kind = tool_kind(index);
  if (kind == ResponseToolKind::kFunction) {
    append_part_event(events, "response.function_call_arguments.done", index, [&](JsonWriter& json) {
      json.member("name", part.name);
      json.member("arguments", part.text);
    });
  } else if (kind == ResponseToolKind::kCustom) {
    const std::string input = custom_input(part.text);
    append_part_event(events, "response.custom_tool_call_input.delta", index,
                      [&](JsonWriter& json) { json.member("delta", input); });
    append_part_event(events, "response.custom_tool_call_input.done", index,
                      [&](JsonWriter& json) { json.member("input", input); });
  }
}

void ResponsesAnswer::close_part(size_t index, const MessagePart& part, std::string& events) {
  if (part.kind == PartKind::kCall) {
    close_call(index, part, events);
  } else {
    const bool is_text = part.kind == PartKind::kText;
    append_part_event(events, is_text ? "response.output_text.done" : "response.reasoning_text.done", index,
                      [&](JsonWriter& json) {
                        json.member("text", part.text);
                        if (is_text) json.key("logprobs").json("[]");
                      });
    append_part_event(events, "response.content_part.done", index,
                      [&](JsonWriter& json) { write_content(json.key("part"), part.kind, part.text); });
  }
  append_event(events, "response.output_item.done", [&](JsonWriter& json) {
    json.member("output_index", index);
    write_item(json.key("item"), index, completion() ? status_of(*completion()) : "completed");
  });
}

void ResponsesAnswer::end(std::string& events) {
  const std::string_view status = status_of(*completion());
  append_event(events, "response." + std::string(status),
               [&](JsonWriter& json) { write_response(json.key("response"), status); });
}

std::string ResponsesAnswer::error_events(const ApiError& error) {
  std::string events;
  append_event(events, "error", [&](JsonWriter& json) {
    json.member("code", text_or_null(error.code)).member("message", error.message);
    json.member("param", text_or_null(error.param));
  });
  return events;
}

std::string ResponsesAnswer::whole_body() const {
  std::string out;
  JsonWriter json(out);
  write_response(json, status_of(*completion()));
  return out;
}

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
