// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/thinking.h"

#include <utility>

#include "server/api/tool_calls/held_text.h"

namespace outrider {
namespace {

constexpr ThinkingForm kThinkingForms[] = {
    // gpt-oss
    {"<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "", true},
    // Qwen 3, DeepSeek R1, GLM, SmolLM3, OLMo 3, Kimi K2, MiniMax and others
    {"<think>", "</think>", "\n</think>\n\n"},
    // Magistral and Ministral 3
    {"[THINK]", "[/THINK]", "[/THINK]"},
    // Gemma 4
    {"<|channel>thought", "<channel|>", "\n<channel|>"},
    // Granite 3.2
    {"Here is my thought process:", "Here is my response:", "\n\nHere is my response: "},
};

}  // namespace

const ThinkingForm* find_thinking_form(std::string_view chat_template, std::string_view prompt) {
  const auto contains = [&](std::string_view text) {
    return chat_template.find(text) != std::string_view::npos;
  };
  for (const ThinkingForm& form : kThinkingForms) {
    if (form.is_channel ? contains("<|channel|>") && contains("<|message|>") : contains(form.close))
      return &form;
  }
  for (const ThinkingForm& form : kThinkingForms) {
    if (trimmed(prompt).ends_with(form.open)) return &form;
  }
  return nullptr;
}

ThinkingState thinking_at_end(const ThinkingForm& form, std::string_view tail) {
  const size_t open = tail.rfind(form.open), close = tail.rfind(form.close);
  if (open == std::string_view::npos && close == std::string_view::npos) return ThinkingState::kMayBegin;
  const bool is_open = close == std::string_view::npos || (open != std::string_view::npos && open > close);
  return is_open ? ThinkingState::kOpen : ThinkingState::kClosed;
}

ThinkingSplitter::ThinkingSplitter(const ThinkingForm& form, ThinkingState state)
    : form_(form),
      state_(state == ThinkingState::kOpen     ? State::kOpened
             : state == ThinkingState::kClosed ? State::kContent
                                               : State::kStart),
      may_repeat_(state == ThinkingState::kOpen) {}

void ThinkingSplitter::push(char next, std::string& thinking, std::string& content) {
  held_ += next;
  switch (state_) {
    case State::kStart:
      if (held_.ends_with(form_.open)) {
        state_ = State::kOpened;
        held_.clear();
      } else if (!may_become(held_, form_.open)) {
        state_ = State::kContent;
        content += std::exchange(held_, {});
      }
      return;
    case State::kOpened:
      if (is_json_space(next) && held_.size() == 1) {
        held_.clear();
        return;
      }
      if (may_repeat_ && form_.open.starts_with(held_)) {
        may_repeat_ = held_ != form_.open;
        if (!may_repeat_) held_.clear();
        return;
      }
      state_ = State::kInside;
      [[fallthrough]];
    case State::kInside:
      release(held_, form_.close, thinking);
      if (!held_.ends_with(form_.close)) return;
      state_ = State::kClosed;
      held_.clear();
      return;
    case State::kLate:
      if (held_.ends_with(form_.close)) {
        state_ = State::kClosed;
        is_late_ = false;
        held_.clear();
      } else if (!may_become(held_, form_.close)) {
        state_ = State::kContent;
        content += std::exchange(held_, {});
      }
      return;
    case State::kClosed:
      if (!is_json_space(next)) state_ = State::kContent;
      if (!is_json_space(next)) content += next;
      held_.clear();
      return;
    case State::kContent:
      content += std::exchange(held_, {});
      return;
  }
}

void ThinkingSplitter::finish(std::string& thinking, std::string& content) {
  (is_thinking() ? thinking : content) += std::exchange(held_, {});
}

void ThinkingSplitter::end_by_call() {
  is_late_ = is_late_ || is_thinking();
  if (is_late_) state_ = State::kLate;
}

}  // namespace outrider
