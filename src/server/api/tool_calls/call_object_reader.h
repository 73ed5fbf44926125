// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/api/tool_calls/call_reader.h"
#include "server/api/tool_calls/json_string_state.h"

namespace outrider {

// Reads a call that is a JSON object with "name" and "arguments" or "parameters". The latter are an object or
// a string that holds the text of one.
class CallObjectReader final : public CallReader {
 public:
  State push(char next) override;
  const std::optional<std::string>& name() const override { return name_; }
  std::string_view arguments() const override;
  std::optional<std::string> finished_arguments() const override;

 private:
  enum class Phase : uint8_t { kOpen, kKey, kColon, kValue, kInValue, kNext };

  State end_string();
  State push_structure(char next);
  State begin_value(char next);
  State end_value(size_t end);
  State next_member(char next);

  std::string text_;
  std::string nesting_;  // the open brackets: "{[" ...
  Phase phase_ = Phase::kOpen;
  JsonStringState string_;
  bool may_end_ = false;  // the object may close where a key is expected
  size_t string_begin_ = 0;
  size_t value_begin_ = 0;
  std::string key_;
  std::optional<std::string> name_;
  size_t arguments_begin_ = 0;  // 0: absent
  size_t arguments_end_ = 0;    // 0: not finished
};

}  // namespace outrider
