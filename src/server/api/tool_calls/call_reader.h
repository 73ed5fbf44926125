// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/tool_calls/call_forms.h"
#include "server/api/tool_calls/read_state.h"
#include "server/api/tools/tool_use.h"

namespace outrider {

// Reads one tool call character by character. The first character is the one after the mark that begins the
// call.
class CallReader {
 public:
  virtual ~CallReader() = default;
  virtual ReadState push(char next) = 0;
  // The output ends here. Whether the call is complete.
  virtual bool finish() { return false; }

  // The tool's name, as soon as it is complete.
  virtual const std::optional<std::string>& name() const = 0;
  // The beginning of the arguments' JSON object as far as it is certain, the whole object of a complete call;
  // empty before it begins.
  virtual std::string_view arguments() const = 0;
  // The text that makes arguments() a JSON object.
  virtual std::string ending() const = 0;
  // The text that was taken since arguments() began and is not in it.
  virtual std::string held() const = 0;
};

// The tools that may be called. Their schemas give the types of arguments that are written as plain text.
using SharedTools = std::shared_ptr<const std::vector<Tool>>;

// A reader of one call of the form. `is_object`: the call is a JSON object, in a form that takes such calls,
// too.
std::unique_ptr<CallReader> make_call_reader(const CallForm& form, bool is_object, const SharedTools& tools);

}  // namespace outrider
