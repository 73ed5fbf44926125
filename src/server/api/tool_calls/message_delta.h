// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// The parts of a chat message that some new text added: the fields of OpenAI's "delta".
struct MessageDelta {
  struct Call {
    int index = 0;
    std::string name;  // only in the first delta of a call
    std::string arguments;
  };
  std::string reasoning;
  std::string content;
  std::vector<Call> calls;

  bool empty() const { return reasoning.empty() && content.empty() && calls.empty(); }

  void begin_call(int index, std::string_view name) {
    calls.push_back({.index = index, .name = std::string(name), .arguments = {}});
  }
  void extend_call(int index, std::string_view arguments) {
    if (arguments.empty()) return;
    if (calls.empty() || calls.back().index != index)
      calls.push_back({.index = index, .name = {}, .arguments = {}});
    calls.back().arguments += arguments;
  }
};

}  // namespace outrider
