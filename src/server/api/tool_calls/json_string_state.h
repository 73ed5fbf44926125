// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace outrider {

// Tracks whether the next character of a JSON text is inside a string.
class JsonStringState {
 public:
  bool is_inside() const { return is_inside_; }

  // Returns whether `next` belongs to a string. The quotes belong to it.
  bool push(char next) {
    const bool was_inside = is_inside_;
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (next == '"') {
      is_inside_ = !is_inside_;
    } else {
      is_escaped_ = is_inside_ && next == '\\';
    }
    return was_inside || is_inside_;
  }

 private:
  bool is_inside_ = false;
  bool is_escaped_ = false;  // a backslash precedes the next character
};

}  // namespace outrider
