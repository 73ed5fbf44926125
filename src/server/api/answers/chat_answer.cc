// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/chat_answer.h"

#include <utility>

#include "server/api/answers/token_text.h"
#include "server/api/tools/custom_tools.h"

namespace outrider {
namespace {

constexpr Answer::Names kChatNames = {"chatcmpl-", "chat.completion", "chat.completion.chunk"};

}  // namespace

ChatAnswer::ChatAnswer(ChatSpec spec, const CallContext& context, std::vector<Request> requests)
    : Answer(spec, context, kChatNames, std::move(requests)), logprobs_(spec.logprobs), id_(context.id) {
  for (size_t i = 0; i < choices(); ++i) {
    choices_.push_back({.parser = MessageParser(spec), .custom = CustomCalls(spec.prompt.tools.tools)});
  }
}

bool ChatAnswer::begin_choice(int, JsonWriter& json) {
  json.key("delta").begin_object().member("role", "assistant").member("content", "").end_object();
  json.key("logprobs").null();
  return true;
}

bool ChatAnswer::add_choice(int index, std::string_view text, const ChoiceDelta& delta, JsonWriter& json) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  MessageDelta output = choice.parser.push(text, delta.tokens, delta.completion.has_value());
  const size_t listed = delta.logprobs.empty() ? 0 : text_tokens(delta);
  if (listed > 0) {
    JsonWriter items(choice.logprobs, !choice.logprobs.empty());
    write_chat_logprobs(items, tokenizer(), delta.tokens, std::span(delta.logprobs).first(listed));
  }
  if (spec().streams) {
    choice.custom.hold(output, delta.completion.has_value());
    write_delta(json, index, output);
    write_logprobs(json, logprobs_ && listed > 0, std::exchange(choice.logprobs, {}));
    return !output.empty() || listed > 0;
  }
  choice.message.reasoning += output.reasoning;
  choice.message.content += output.content;
  for (auto& call : output.calls) {
    if (!call.name.empty()) choice.message.begin_call(call.index, call.name);
    choice.message.extend_call(call.index, call.arguments);
  }
  return false;
}

void ChatAnswer::write_delta(JsonWriter& json, int index, const MessageDelta& delta) const {
  json.key("delta").begin_object();
  if (!delta.reasoning.empty()) json.member("reasoning_content", delta.reasoning);
  if (!delta.content.empty()) json.member("content", delta.content);
  if (!delta.calls.empty()) {
    json.key("tool_calls").begin_array();
    for (const MessageDelta::Call& call : delta.calls) {
      json.begin_object().member("index", call.index);
      const bool is_custom = choices_[static_cast<size_t>(index)].custom.has(call.index);
      write_call(json, index, {.call = call, .has_name = !call.name.empty(), .is_custom = is_custom});
    }
    json.end_array();
  }
  json.end_object();
}

void ChatAnswer::write_call(JsonWriter& json, int index, const ListedCall& listed) const {
  const MessageDelta::Call& call = listed.call;
  const std::string_view type = listed.is_custom ? "custom" : "function";
  if (listed.has_name) json.member("id", call_id(index, call.index)).member("type", type);
  json.key(type).begin_object();
  if (listed.has_name) json.member("name", call.name);
  json.member(listed.is_custom ? "input" : "arguments", call.arguments).end_object().end_object();
}

void ChatAnswer::write_logprobs(JsonWriter& json, bool is_listed, const std::string& items) const {
  json.key("logprobs");
  if (!is_listed) {
    json.null();
    return;
  }
  json.begin_object().key("content").begin_array();
  if (!items.empty()) json.json(items);
  json.end_array().key("refusal").null().end_object();
}

void ChatAnswer::end_choice(int, JsonWriter& json) {
  json.key("delta").begin_object().end_object().key("logprobs").null();
}

void ChatAnswer::whole_choice(int index, JsonWriter& json) {
  const Choice& choice = choices_[static_cast<size_t>(index)];
  const MessageDelta& message = choice.message;
  json.key("message").begin_object().member("role", "assistant").key("content");
  message.content.empty() && !message.calls.empty() ? json.null() : json.value(message.content);
  json.key("refusal").null();
  if (!message.reasoning.empty()) json.member("reasoning_content", message.reasoning);
  if (!message.calls.empty()) {
    json.key("tool_calls").begin_array();
    for (MessageDelta::Call call : message.calls) {
      const bool is_custom = choice.custom.is_custom(call.name);
      if (is_custom) call.arguments = custom_input(call.arguments);
      write_call(json.begin_object(), index, {.call = call, .has_name = true, .is_custom = is_custom});
    }
    json.end_array();
  }
  json.end_object();
  write_logprobs(json, logprobs_, choice.logprobs);
}

bool ChatAnswer::has_tool_calls(int index) const {
  return choices_[static_cast<size_t>(index)].parser.has_calls();
}

// An id of nine letters and digits, the only kind that Mistral's templates accept.
std::string ChatAnswer::call_id(int choice, int call) const {
  return id_text(id_ + '/' + std::to_string(choice) + '/' + std::to_string(call), 9);
}

}  // namespace outrider
