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
  choices_.resize(choices());
  const ToolUse& tools = spec.prompt.tools;
  const ToolFormat& format =
      tools.must_call() ? plain_tool_format() : tool_format(spec.model->chat_template->source());
  const auto shared_tools = std::make_shared<const std::vector<Tool>>(tools.tools);
  for (Choice& choice : choices_) {
    if (spec.prompt.can_think) choice.reasoning.emplace(spec.prompt.begins_thinking);
    if (tools.choice == ToolChoice::kNone) continue;
    choice.calls.emplace(
        ToolCallParser::Options{.format = format, .incremental = spec.streams, .parallel = tools.parallel},
        shared_tools);
  }
}

MessageDelta ChatAnswer::parse(Choice& choice, std::string_view text, bool is_last) {
  MessageDelta output;
  std::string said;
  if (choice.reasoning) {
    choice.reasoning->push(text, output.reasoning, said);
    if (is_last) choice.reasoning->finish(output.reasoning, said);
  } else {
    said = text;
  }
  if (!choice.calls) {
    output.content = std::move(said);
    return output;
  }
  choice.calls->push(said, output);
  if (is_last) choice.calls->finish(output);
  return output;
}

bool ChatAnswer::begin_choice(int, std::string& out) {
  out += R"(,"delta":{"role":"assistant","content":""},"logprobs":null)";
  return true;
}

bool ChatAnswer::add_choice(int index, std::string_view text, const ChoiceDelta& delta, std::string& out) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  MessageDelta output = parse(choice, text, delta.completion.has_value());
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
  if (choice.reasoning && !message.reasoning.empty())
    append_member(out, "reasoning_content", message.reasoning);
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
  const auto& calls = choices_[static_cast<size_t>(index)].calls;
  return calls && calls->calls() > 0;
}

// An id of nine letters and digits, the only kind that Mistral's templates accept.
std::string ChatAnswer::call_id(int choice, int call) const {
  constexpr std::string_view kCharacters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr int kLength = 9;
  const std::string seed = id_ + '/' + std::to_string(choice) + '/' + std::to_string(call);
  uint64_t bits = text_hash(seed);
  std::string id;
  for (int i = 0; i < kLength; ++i, bits /= kCharacters.size()) id += kCharacters[bits % kCharacters.size()];
  return id;
}

}  // namespace outrider
