// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/message_answer.h"

#include <span>
#include <utility>

#include "server/api/answers/answer.h"

namespace outrider {

MessageAnswer::MessageAnswer(ChatSpec spec, const CallContext& context, std::vector<Request> requests)
    : GenerationCall(std::move(requests), spec.streams, spec.ignored),
      spec_(std::move(spec)),
      id_(context.id),
      created_(context.created),
      parser_(spec_) {
  figures_.prompt_tokens = static_cast<int64_t>(this->requests().front().prompt.size());
}

void MessageAnswer::start(std::string& events) {
  if (spec_.streams) begin(events);
}

void MessageAnswer::add(int, ChoiceDelta delta, std::string& events) {
  figures_.add(delta);
  const MessageDelta output = parser_.push(delta.text, delta.tokens, delta.completion.has_value());
  if (!output.reasoning.empty() && output.content.empty() && output.calls.empty()) {
    reasoning_tokens_ += static_cast<int64_t>(delta.tokens.size());
  }
  // The rest of an open call comes before text, and text before new calls.
  std::span<const MessageDelta::Call> calls(output.calls);
  if (!calls.empty() && calls.front().name.empty()) {
    add_call(calls.front(), events);
    calls = calls.subspan(1);
  }
  add_text(MessagePart::Kind::kReasoning, output.reasoning, events);
  add_text(MessagePart::Kind::kText, output.content, events);
  for (const MessageDelta::Call& call : calls) add_call(call, events);
  if (!delta.completion) return;
  completion_ = std::move(delta.completion);
  close_last(events);
  on_end();
  if (spec_.streams) end(events);
}

void MessageAnswer::add_text(MessagePart::Kind kind, std::string_view text, std::string& events) {
  if (text.empty()) return;
  if (parts_.empty() || parts_.back().kind != kind) open({.kind = kind}, events);
  extend(text, events);
}

void MessageAnswer::add_call(const MessageDelta::Call& call, std::string& events) {
  if (!call.name.empty()) open({.kind = MessagePart::Kind::kCall, .name = call.name}, events);
  extend(call.arguments, events);
}

void MessageAnswer::open(MessagePart part, std::string& events) {
  close_last(events);
  parts_.push_back(std::move(part));
  if (spec_.streams) open_part(parts_.size() - 1, parts_.back(), events);
}

void MessageAnswer::extend(std::string_view text, std::string& events) {
  if (text.empty()) return;
  parts_.back().text += text;
  if (spec_.streams) extend_part(parts_.size() - 1, parts_.back(), text, events);
}

void MessageAnswer::close_last(std::string& events) {
  if (spec_.streams && !parts_.empty()) close_part(parts_.size() - 1, parts_.back(), events);
}

std::string MessageAnswer::part_id(std::string_view prefix, size_t index) const {
  constexpr int kLength = 24;
  return std::string(prefix) + id_text(id_ + '/' + std::to_string(index), kLength);
}

std::string MessageAnswer::call_id(size_t index) const {
  return id_text(id_ + "/call/" + std::to_string(index), 9);
}

JsonWriter begin_event(std::string& events, std::string_view name) {
  events.append("event: ").append(name).append("\ndata: ");
  return JsonWriter(events);
}

void end_event(std::string& events, JsonWriter& json) {
  json.end_object();
  events += "\n\n";
}

}  // namespace outrider
