// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/api/tool_calls/call_reader.h"
#include "server/api/tool_calls/json_string_state.h"

namespace outrider {

// Reads a call of DeepSeek-V3 or R1: function<sep>NAME, a line break, and the arguments in a fence (```json).
// Newer DeepSeek models write NAME<sep> and the arguments without a fence. The call ends with its arguments.
class FencedCallReader final : public CallReader {
 public:
  State push(char next) override;
  const std::optional<std::string>& name() const override { return name_; }
  std::string_view arguments() const override { return arguments_; }
  std::optional<std::string> finished_arguments() const override;

 private:
  enum class Phase : uint8_t { kType, kName, kFence, kArguments };

  State push_type();
  State push_name();
  State push_fence();
  State push_argument(char next);

  Phase phase_ = Phase::kType;
  std::string held_;  // text of the phase so far; unused in kArguments
  std::optional<std::string> name_;
  std::string arguments_;
  int depth_ = 0;  // number of open brackets
  JsonStringState string_;
};

}  // namespace outrider
