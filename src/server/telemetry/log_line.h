// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "server/api/json_writer.h"

namespace outrider {

// A line with one JSON object in ASCII, which begins with the time and what happened.
class LogLine {
 public:
  LogLine(std::string_view member, std::string_view what);
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  JsonWriter& writer() { return writer_; }
  // The whole line with its end. Nothing is added after it.
  std::string take();

 private:
  std::string text_;
  JsonWriter writer_{text_};
};

}  // namespace outrider
