// SPDX-License-Identifier: Apache-2.0
#include "server/api/ollama/ollama_answer.h"

#include <cmath>
#include <utility>

#include "server/api/json_text.h"
#include "server/api/ollama/ollama_models.h"

namespace outrider {
namespace {

int64_t nanoseconds(double milliseconds) { return std::llround(milliseconds * 1e6); }

}  // namespace

OllamaAnswer::OllamaAnswer(OllamaSpec spec, const CallContext& context, std::vector<Request> requests)
    : GenerationCall(std::move(requests), spec.streams, spec.ignored),
      spec_(std::move(spec)),
      created_at_(utc_time(context.created)),
      parser_(spec_) {
  const std::vector<TokenId>& prompt = this->requests().front().prompt;
  figures_.prompt_tokens = static_cast<int64_t>(prompt.size());
  if (spec_.returns_context) context_ = prompt;
}

JsonWriter OllamaAnswer::begin_object(std::string& out) const {
  JsonWriter json(out);
  json.begin_object().member("model", spec_.model->name).member("created_at", created_at_);
  return json;
}

void OllamaAnswer::write_message(JsonWriter& json, const MessageDelta& message) const {
  if (spec_.is_chat) json.key("message").begin_object().member("role", "assistant");
  json.member(spec_.is_chat ? "content" : "response", message.content);
  if (!message.reasoning.empty()) json.member("thinking", message.reasoning);
  if (!message.calls.empty()) {
    json.key("tool_calls").begin_array();
    for (const MessageDelta::Call& call : message.calls) {
      json.begin_object().key("function").begin_object().member("name", call.name).key("arguments");
      json.json(call.arguments).end_object().end_object();
    }
    json.end_array();
  }
  if (spec_.is_chat) json.end_object();
}

// Durations are in nanoseconds.
void OllamaAnswer::write_end(JsonWriter& json) const {
  json.member("done", true);
  if (spec_.only_loads) {
    json.member("done_reason", "load");
    return;
  }
  const Completion& completion = *completion_;
  json.member("done_reason", completion.finish_reason == FinishReason::kLength ? "length" : "stop");
  if (spec_.returns_context) json.member("context", context_);
  json.member("total_duration",
              nanoseconds(completion.queue_ms + completion.prompt_ms + completion.decode_ms));
  json.member("load_duration", nanoseconds(completion.queue_ms));
  json.member("prompt_eval_count", figures_.prompt_tokens);
  json.member("prompt_eval_duration", nanoseconds(completion.prompt_ms));
  json.member("eval_count", figures_.completion_tokens);
  json.member("eval_duration", nanoseconds(completion.decode_ms));
}

void OllamaAnswer::write_line(std::string& events, const MessageDelta& message) const {
  JsonWriter json = begin_object(events);
  write_message(json, message);
  json.member("done", false).end_object();
  events += '\n';
}

// Text is sent as it comes, and calls wait for the end.
void OllamaAnswer::take(MessageDelta output, std::string& events) {
  for (const MessageDelta::Call& call : output.calls) {
    if (!call.name.empty()) message_.begin_call(call.index, call.name);
    message_.extend_call(call.index, call.arguments);
  }
  output.calls.clear();
  if (!spec_.streams) {
    message_.content += output.content;
    message_.reasoning += output.reasoning;
  } else if (!output.empty()) {
    write_line(events, output);
  }
}

// A call that the end of the output has cut is text.
void OllamaAnswer::take_calls(std::string& events) {
  MessageDelta output;
  for (MessageDelta::Call& call : std::exchange(message_.calls, {})) {
    if (is_json_object(call.arguments)) {
      output.calls.push_back(std::move(call));
    } else {
      output.content += call.name + call.arguments;
    }
  }
  if (!spec_.streams) {
    message_.content += output.content;
    message_.calls = std::move(output.calls);
  } else if (!output.empty()) {
    write_line(events, output);
  }
}

void OllamaAnswer::add(int, ChoiceDelta delta, std::string& events) {
  figures_.add(delta);
  if (spec_.returns_context) context_.insert(context_.end(), delta.tokens.begin(), delta.tokens.end());
  const bool is_last = delta.completion.has_value();
  if (!spec_.only_loads) take(parser_.push(delta.text, delta.tokens, is_last), events);
  if (!is_last) return;
  completion_ = std::move(delta.completion);
  take_calls(events);
  if (!spec_.streams) return;
  JsonWriter json = begin_object(events);
  write_message(json, {});
  write_end(json);
  json.end_object();
  events += '\n';
}

std::string OllamaAnswer::error_events(const ApiError& error) {
  return error_body(error, ErrorForm::kOllama) + "\n";
}

std::string OllamaAnswer::body() {
  std::string out;
  JsonWriter json = begin_object(out);
  write_message(json, message_);
  write_end(json);
  json.end_object();
  return out;
}

}  // namespace outrider
