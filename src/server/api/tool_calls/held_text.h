// SPDX-License-Identifier: Apache-2.0
// Text that is held back because it may become a mark.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/white_space.h"

namespace outrider {

// White space before a mark that is held back; more is text.
inline constexpr size_t kMaxHeldSpace = 256;

inline std::string_view without_leading_space(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kJsonSpace), text.size()));
  return text;
}

// Whether `text` is white space followed by a beginning of `mark`.
inline bool may_become(std::string_view text, std::string_view mark) {
  const std::string_view rest = without_leading_space(text);
  return text.size() - rest.size() <= kMaxHeldSpace && mark.starts_with(rest);
}

// Moves the first characters of `held` to `out` until the rest may become white space and `mark`.
inline void release(std::string& held, std::string_view mark, std::string& out) {
  size_t count = 0;
  while (!may_become(std::string_view(held).substr(count), mark)) ++count;
  out.append(held, 0, count);
  held.erase(0, count);
}

}  // namespace outrider
