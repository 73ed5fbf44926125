// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// An answer as a terminal shows it while its end may be provisional: text that was written without the server
// is marked and coloured, and the server's own text follows where it is another.
class ProvisionalText {
 public:
  explicit ProvisionalText(bool colour) : colour_(colour) {}

  // Both return what is to be shown next.
  std::string push_alone(std::string_view text);
  std::string push(std::string_view text);

 private:
  std::string marked(std::string_view text) const;

  bool colour_;
  std::string shown_;  // written offline, and not yet followed by text that stays
};

}  // namespace outrider
