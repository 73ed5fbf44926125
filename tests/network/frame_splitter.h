// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace outrider {

// Cuts one direction of a connection that becomes a WebSocket into its HTTP header and its frames (RFC 6455).
class FrameSplitter {
 public:
  struct Part {
    std::string bytes;
    size_t payload = 0;       // index of the first byte of a frame's payload
    bool is_message = false;  // a frame that holds a whole binary message

    // The payload as it was before the client masked it.
    std::string message() const;
  };

  void add(std::string_view bytes) { bytes_ += bytes; }
  // The next part that is complete.
  std::optional<Part> next();
  // The bytes after the last complete part.
  std::string take_rest() { return std::move(bytes_); }

 private:
  std::optional<Part> next_frame();
  Part take(size_t size);

  std::string bytes_;
  bool has_header_ = false;
};

}  // namespace outrider
