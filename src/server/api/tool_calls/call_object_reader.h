// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/api/tool_calls/call_reader.h"
#include "server/api/tool_calls/json_object_text.h"

namespace outrider {

// Reads a call that is a JSON object with "name" and "arguments" or "parameters". The arguments are an
// object, or a string that holds the text of an object.
class CallObjectReader final : public CallReader {
 public:
  ReadState push(char next) override;
  // An object with complete arguments counts without its last bracket.
  bool finish() override { return name_ && !in_arguments_ && !arguments_.text().empty(); }
  const std::optional<std::string>& name() const override { return name_; }
  std::string_view arguments() const override { return arguments_.text(); }
  std::string ending() const override { return in_arguments_ ? arguments_.ending() : ""; }
  std::string held() const override { return in_arguments_ ? arguments_.held() : after_; }

 private:
  enum class Phase : uint8_t { kOpen, kKey, kColon, kValue, kInValue, kNext };

  ReadState step(char next);
  ReadState push_argument(char next);
  ReadState end_string();
  ReadState push_structure(char next);
  ReadState begin_value(char next);
  ReadState push_nested(char next);
  ReadState end_value(size_t end);
  ReadState next_member(char next);
  ReadState end_call();

  std::string text_;     // of the object, with its arguments left out
  std::string nesting_;  // the open brackets: "{[" ...
  Phase phase_ = Phase::kOpen;
  bool in_string_ = false;
  bool is_escaped_ = false;  // a backslash precedes the next character
  bool may_end_ = false;     // the object may close where a key is expected
  size_t string_begin_ = 0;
  size_t value_begin_ = 0;
  std::string key_;
  std::optional<std::string> name_;
  JsonObjectText arguments_;
  bool has_arguments_ = false;   // they have begun, as an object or as another value
  bool in_arguments_ = false;    // the next character belongs to their object
  std::string other_arguments_;  // a value that is no object
  std::string after_;            // what follows the arguments
};

}  // namespace outrider
