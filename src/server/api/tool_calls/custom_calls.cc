// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/custom_calls.h"

#include <utility>

#include "server/api/tools/custom_tools.h"

namespace outrider {

CustomCalls::CustomCalls(const std::vector<Tool>& tools) {
  for (const Tool& tool : tools) {
    if (tool.takes_text) names_.insert(tool.name);
  }
}

void CustomCalls::hold(MessageDelta& delta, bool is_last) {
  if (names_.empty()) return;
  std::vector<MessageDelta::Call> calls;
  for (MessageDelta::Call& call : delta.calls) {
    if (!call.name.empty()) flush(calls);
    if (is_custom(call.name)) {
      open_ = call.index;
      calls_.insert(call.index);
      calls.push_back({.index = call.index, .name = call.name, .arguments = {}});
    }
    if (call.index == open_) {
      arguments_ += call.arguments;
    } else {
      calls.push_back(std::move(call));
    }
  }
  if (is_last) flush(calls);
  delta.calls = std::move(calls);
}

void CustomCalls::flush(std::vector<MessageDelta::Call>& calls) {
  const int open = std::exchange(open_, -1);
  if (open < 0) return;
  calls.push_back(
      {.index = open, .name = {}, .arguments = custom_input(std::exchange(arguments_, std::string()))});
}

}  // namespace outrider
