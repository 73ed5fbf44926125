// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace outrider {

// Parses the server-sent events of a stream, which may be cut into pieces anywhere.
class SseParser {
 public:
  // Calls `sink` with the name ("": none) and the data of every event that these bytes complete. False: an
  // event is longer than 16 MiB.
  using Sink = std::function<void(std::string_view name, std::string_view data)>;
  [[nodiscard]] bool feed(std::string_view bytes, const Sink& sink);

 private:
  void take_line(std::string_view line, const Sink& sink);

  std::string line_;  // the beginning of an incomplete line
  std::string name_, data_;
  bool has_data_ = false;
  bool after_return_ =
      false;  // the last byte was a carriage return; a line feed after it ends no second line
};

}  // namespace outrider
