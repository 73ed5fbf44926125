// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/tool_calls/tool_use.h"

namespace outrider {

// Reads one tool call character by character. The first character is the one after the mark that begins the
// call.
class CallReader {
 public:
  enum class State : uint8_t { kReading, kDone, kBroken };

  virtual ~CallReader() = default;
  virtual State push(char next) = 0;

  // The tool's name, as soon as it is complete.
  virtual const std::optional<std::string>& name() const = 0;
  // The part of the arguments' JSON object that was read so far; empty before it begins.
  virtual std::string_view arguments() const = 0;
  // The arguments of a finished call as a JSON object. nullopt: the text is no call, or they are not JSON.
  virtual std::optional<std::string> finished_arguments() const = 0;
};

// The tools that may be called. Their schemas give the types of arguments that are written as plain text.
using SharedTools = std::shared_ptr<const std::vector<Tool>>;

}  // namespace outrider
