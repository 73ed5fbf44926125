// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// Finds stop strings in text that comes in pieces. Text that may be the beginning of a stop string is held
// back until later text decides.
class StopMatcher {
 public:
  // Empty strings never match.
  explicit StopMatcher(std::vector<std::string> stops);

  // Appends to `out` the text that is certainly not part of a stop string.
  void push(std::string_view text, std::string& out);

  // Ends the text: appends the text that was held back.
  void finish(std::string& out);

  // Whether a stop string was found. The text ends before it.
  bool matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace outrider
