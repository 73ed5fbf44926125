// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/output_parser.h"

#include <algorithm>
#include <utility>

namespace outrider {
namespace {

bool has_channels(const OutputParts& parts) {
  const auto is_channel = [](const CallForm* form) { return form->shape == CallShape::kChannel; };
  return (parts.thinking != nullptr && parts.thinking->is_channel) ||
         std::any_of(parts.calls.begin(), parts.calls.end(), is_channel);
}

}  // namespace

OutputParser::OutputParser(OutputParts parts, SharedTools tools) {
  if (has_channels(parts)) {
    channels_.emplace(parts.calls.empty() ? nullptr : std::move(tools), parts.parallel, parts.prompt_tail,
                      parts.shows_thinking);
    return;
  }
  if (parts.thinking != nullptr && !parts.shows_thinking) thinking_.emplace(*parts.thinking, parts.begins);
  if (parts.calls.empty()) return;
  calls_.emplace(ToolCallParser::Options{.forms = std::move(parts.calls), .parallel = parts.parallel},
                 std::move(tools));
  std::string none;
  calls_->begin_part(none, !is_thinking());
}

MessageDelta OutputParser::push(std::string_view text, bool is_last) {
  MessageDelta delta;
  for (const char next : text) {
    pending_ += next;
    run(delta);
  }
  if (is_last) finish(delta);
  return delta;
}

void OutputParser::run(MessageDelta& delta) {
  while (!pending_.empty()) {
    const char next = pending_.back();
    pending_.pop_back();
    step(next, delta);
  }
}

bool OutputParser::has_calls() const {
  if (channels_) return channels_->calls() > 0 && !channels_->is_broken();
  return calls_ && calls_->calls() > 0 && !calls_->is_broken();
}

// Calls may also begin within thinking, which they end.
void OutputParser::step(char next, MessageDelta& delta) {
  if (channels_) return channels_->push(next, delta);
  const bool was_thinking = is_thinking();
  std::string thought, said;
  if (!thinking_ || (calls_ && calls_->is_busy())) {
    (was_thinking ? thought : said) = std::string(1, next);
  } else {
    thinking_->push(next, thought, said);
  }
  const bool is_new_part = is_thinking() != was_thinking;
  say(thought, delta.reasoning, delta);
  if (calls_ && is_new_part) {
    calls_->begin_part(was_thinking ? delta.reasoning : delta.content, was_thinking);
  }
  say(said, delta.content, delta);
}

// Text that is to be read again comes before the rest of `text`, and all of it before what follows.
void OutputParser::say(std::string_view text, std::string& plain, MessageDelta& delta) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (!calls_) {
      plain += text.substr(i);
      return;
    }
    std::string again;
    calls_->push(text[i], plain, delta, again);
    if (again.empty() && !calls_->is_busy()) continue;
    if (thinking_ && calls_->is_busy() && calls_->calls() > 0) thinking_->end_by_call();
    again += text.substr(i + 1);
    pending_.append(again.rbegin(), again.rend());
    return;
  }
}

void OutputParser::finish(MessageDelta& delta) {
  if (channels_) return channels_->finish(delta);
  bool is_done = false;
  while (!is_done) {
    if (thinking_ && !(calls_ && calls_->is_busy())) {
      std::string thought, said;
      thinking_->finish(thought, said);
      say(thought, delta.reasoning, delta);
      say(said, delta.content, delta);
      run(delta);
    }
    std::string again;
    if (calls_) calls_->finish(is_thinking() ? delta.reasoning : delta.content, delta, again);
    pending_.assign(again.rbegin(), again.rend());
    is_done = again.empty();
    run(delta);
  }
}

}  // namespace outrider
