// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/chat_answer.h"

#include "server/api/answers/token_text.h"
#include "server/api/json_text.h"

namespace outrider {
namespace {

constexpr Answer::Names kChatNames = {"chatcmpl-", "chat.completion", "chat.completion.chunk"};

void append_member(std::string& out, std::string_view key, std::string_view text) {
  if (out.back() != '{') out += ',';
  append_json_string(out, key);
  out += ':';
  append_json_string(out, text);
}

}  // namespace

ChatAnswer::ChatAnswer(ChatSpec spec, const CallContext& context, std::vector<Request> requests)
    : Answer(spec, context, kChatNames, std::move(requests)), logprobs_(spec.logprobs), id_(context.id) {
  for (size_t i = 0; i < choices(); ++i) {
    choices_.push_back(
        {.parser = MessageParser(spec.prompt, spec.model->chat_template->source(), spec.streams)});
  }
}

bool ChatAnswer::begin_choice(int, std::string& out) {
  out += R"(,"delta":{"role":"assistant","content":""},"logprobs":null)";
  return true;
}

bool ChatAnswer::add_choice(int index, std::string_view text, const ChoiceDelta& delta, std::string& out) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  MessageDelta output = choice.parser.push(text, delta.completion.has_value());
  if (spec().streams) {
    append_delta(out, index, output);
    append_logprobs(out, delta);
    return !output.empty() || (!delta.logprobs.empty() && text_tokens(delta) > 0);
  }
  choice.message.reasoning += output.reasoning;
  choice.message.content += output.content;
  for (auto& call : output.calls) choice.message.calls.push_back(std::move(call));
  if (delta.logprobs.empty() || text_tokens(delta) == 0) return false;
  if (!choice.logprobs.empty()) choice.logprobs += ',';
  append_chat_logprobs(choice.logprobs, tokenizer(), delta.tokens,
                       std::span(delta.logprobs).first(text_tokens(delta)));
  return false;
}

void ChatAnswer::append_delta(std::string& out, int index, const MessageDelta& delta) const {
  out += ",\"delta\":{";
  if (!delta.reasoning.empty()) append_member(out, "reasoning_content", delta.reasoning);
  if (!delta.content.empty()) append_member(out, "content", delta.content);
  if (!delta.calls.empty()) {
    out += out.back() == '{' ? "\"tool_calls\":[" : ",\"tool_calls\":[";
    for (const MessageDelta::Call& call : delta.calls) {
      if (out.back() != '[') out += ',';
      out += "{\"index\":" + std::to_string(call.index);
      if (!call.name.empty()) {
        append_member(out, "id", call_id(index, call.index));
        append_member(out, "type", "function");
      }
      out += ",\"function\":{";
      if (!call.name.empty()) append_member(out, "name", call.name);
      append_member(out, "arguments", call.arguments);
      out += "}}";
    }
    out += ']';
  }
  out += '}';
}

void ChatAnswer::append_logprobs(std::string& out, const ChoiceDelta& delta) const {
  out += ",\"logprobs\":";
  if (!logprobs_ || delta.logprobs.empty() || text_tokens(delta) == 0) {
    out += "null";
    return;
  }
  out += "{\"content\":[";
  append_chat_logprobs(out, tokenizer(), delta.tokens, std::span(delta.logprobs).first(text_tokens(delta)));
  out += "],\"refusal\":null}";
}

void ChatAnswer::end_choice(int, std::string& out) { out += ",\"delta\":{},\"logprobs\":null"; }

void ChatAnswer::whole_choice(int index, std::string& out) {
  const Choice& choice = choices_[static_cast<size_t>(index)];
  const MessageDelta& message = choice.message;
  out += R"(,"message":{"role":"assistant","content":)";
  if (message.content.empty() && !message.calls.empty()) {
    out += "null";
  } else {
    append_json_string(out, message.content);
  }
  out += ",\"refusal\":null";
  if (!message.reasoning.empty()) append_member(out, "reasoning_content", message.reasoning);
  if (!message.calls.empty()) {
    out += ",\"tool_calls\":[";
    for (const MessageDelta::Call& call : message.calls) {
      out += out.back() == '[' ? "{" : ",{";
      append_member(out, "id", call_id(index, call.index));
      append_member(out, "type", "function");
      out += ",\"function\":{";
      append_member(out, "name", call.name);
      append_member(out, "arguments", call.arguments);
      out += "}}";
    }
    out += ']';
  }
  out += "},\"logprobs\":";
  logprobs_ ? out.append("{\"content\":[").append(choice.logprobs).append("],\"refusal\":null}")
            : out += "null";
}

bool ChatAnswer::has_tool_calls(int index) const {
  return choices_[static_cast<size_t>(index)].parser.has_calls();
}

// An id of nine letters and digits, the only kind that Mistral's templates accept.
std::string ChatAnswer::call_id(int choice, int call) const {
  return id_text(id_ + '/' + std::to_string(choice) + '/' + std::to_string(call), 9);
}

}  // namespace outrider
