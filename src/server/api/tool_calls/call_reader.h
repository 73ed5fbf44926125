// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/tool_calls/tool_use.h"

namespace outrider {

// Reads one call of a tool character by character, from behind the mark that begins it.
class CallReader {
 public:
  enum class State : uint8_t { kReading, kDone, kBroken };

  virtual ~CallReader() = default;
  virtual State push(char next) = 0;

  // Known before the call is done.
  virtual const std::optional<std::string>& name() const = 0;
  // The JSON object of the arguments as far as it has come; empty before.
  virtual std::string_view arguments() const = 0;
  // Of a finished call. nullopt: it is none, or its arguments are not JSON.
  virtual std::optional<std::string> finished_arguments() const = 0;
};

using SharedTools = std::shared_ptr<const std::vector<Tool>>;

// `tools`: that may be called; their schemas say what arguments written as plain text mean.
std::unique_ptr<CallReader> make_call_reader(CallForm form, const SharedTools& tools);

}  // namespace outrider
