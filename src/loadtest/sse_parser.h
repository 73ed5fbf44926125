// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace outrider {

// Server-sent events out of the bytes of a stream, however these were cut.
class SseParser {
 public:
  // Calls `sink` with name ("" for none) and data of every event that is complete now. False: an event is
  // longer than 16 MiB.
  using Sink = std::function<void(std::string_view name, std::string_view data)>;
  [[nodiscard]] bool feed(std::string_view bytes, const Sink& sink);

 private:
  void take_line(std::string_view line, const Sink& sink);

  std::string line_;  // begun, not ended
  std::string name_, data_;
  bool has_data_ = false;
  bool after_return_ = false;  // a line feed right after a carriage return ends no second line
};

}  // namespace outrider
