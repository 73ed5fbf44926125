// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace outrider {

// Reads the JSON object of one tool call character by character: "name", and "arguments" or "parameters".
class CallObjectReader {
 public:
  enum class State : uint8_t { kReading, kDone, kBroken };

  State push(char next);

  // Known before the object is done.
  const std::optional<std::string>& name() const { return name_; }
  // The arguments as far as they have come, where they are an object; empty before.
  std::string_view arguments() const;
  // Of a finished object: an object's text, be it given as an object or as a string with the text of one.
  // nullopt: it is no call, or not JSON.
  std::optional<std::string> finished_arguments() const;

 private:
  enum class Phase : uint8_t { kOpen, kKey, kColon, kValue, kInValue, kNext };

  State push_in_string(char next);
  State push_structure(char next);
  State begin_value(char next);
  State end_value(size_t end);
  State next_member(char next);

  std::string text_;
  std::string nesting_;  // the brackets that are open: "{[" ...
  Phase phase_ = Phase::kOpen;
  bool in_string_ = false;
  bool is_escaped_ = false;
  bool may_end_ = false;  // the object may close where a key is expected
  size_t string_begin_ = 0;
  size_t value_begin_ = 0;
  std::string key_;
  std::optional<std::string> name_;
  size_t arguments_begin_ = 0;  // 0: not there
  size_t arguments_end_ = 0;    // 0: not finished
};

}  // namespace outrider
