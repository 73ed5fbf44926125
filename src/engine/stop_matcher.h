// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// Finds stop strings in text that comes in pieces. Text that might turn out to be the beginning of a stop
// string is held back until that is decided.
class StopMatcher {
 public:
  // Empty strings never match.
  explicit StopMatcher(std::vector<std::string> stops);

  // Appends to `out` what is certainly not part of a stop string.
  void push(std::string_view text, std::string& out);

  // The text ends here: appends what was held back.
  void finish(std::string& out);

  // A stop string was found: nothing from its first byte on is ever given out.
  bool matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace outrider
