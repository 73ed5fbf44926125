// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "server/api/tool_calls/message_delta.h"
#include "server/api/tools/tool_use.h"

namespace outrider {

// The calls of custom tools in one answer. Their input is known when their arguments are complete.
class CustomCalls {
 public:
  explicit CustomCalls(const std::vector<Tool>& tools);

  bool is_custom(const std::string& name) const { return names_.contains(name); }
  bool has(int call) const { return calls_.contains(call); }
  // Keeps the arguments of such calls back, and adds their input to `delta` where another call begins or the
  // answer ends.
  void hold(MessageDelta& delta, bool is_last);

 private:
  void flush(std::vector<MessageDelta::Call>& calls);

  std::set<std::string> names_;
  std::set<int> calls_;  // indices
  int open_ = -1;        // index of the call that is held back
  std::string arguments_;
};

}  // namespace outrider
