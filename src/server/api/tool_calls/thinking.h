// SPDX-License-Identifier: Apache-2.0
// How model families write what they think before they answer, one row each (docs/reference/api.md).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace outrider {

struct ThinkingForm {
  std::string_view open;   // "<think>"
  std::string_view close;  // "</think>"
  // The text that closes the thinking of a prompt that ends within it, as the family's templates write it.
  std::string_view closing;
  bool is_channel = false;  // the parts of an answer are messages on channels: see ChannelParser

  // All marks that tokens may spell: as control tokens they must stay in the text of the output.
  std::array<std::string_view, 2> marks() const { return {open, close}; }
};

// The form whose closing mark the template contains, or whose opening mark ends the prompt; null: none.
const ThinkingForm* find_thinking_form(std::string_view chat_template, std::string_view prompt);

// Where an answer begins.
enum class ThinkingState : uint8_t {
  kMayBegin,  // thinking begins if the answer begins with its mark
  kOpen,      // the prompt ended within thinking
  kClosed,    // the prompt ended with the mark that ends it
};

// `tail`: the end of the prompt, after the last text that somebody else wrote.
ThinkingState thinking_at_end(const ThinkingForm& form, std::string_view tail);

// Separates thinking between its marks at the start of an answer from the content after it, and drops white
// space around the marks.
class ThinkingSplitter {
 public:
  ThinkingSplitter(const ThinkingForm& form, ThinkingState state);

  // Appends what the character makes certain.
  void push(char next, std::string& thinking, std::string& content);
  void finish(std::string& thinking, std::string& content);
  bool is_thinking() const { return state_ == State::kOpened || state_ == State::kInside; }
  bool is_over() const { return state_ == State::kClosed || state_ == State::kContent; }
  // A call begins, which ends the thinking. The mark that ends it may still come.
  void end_by_call();

 private:
  enum class State : uint8_t { kStart, kOpened, kInside, kLate, kClosed, kContent };

  const ThinkingForm& form_;
  State state_;
  bool is_late_ = false;  // a call ended the thinking, and its mark did not come yet
  bool may_repeat_;       // the opening mark may come again after the prompt's
  std::string held_;      // the possible beginning of a mark, or white space before one
};

}  // namespace outrider
