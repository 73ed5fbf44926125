// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/provisional_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace outrider {

std::string ProvisionalText::marked(std::string_view text) const {
  return colour_ ? fmt::format("\x1b[33m{}\x1b[0m", text) : std::string(text);
}

std::string ProvisionalText::push_alone(std::string_view text) {
  if (text.empty()) return {};
  const std::string_view mark = shown_.empty() ? "[offline] " : "";
  shown_ += text;
  return marked(fmt::format("{}{}", mark, text));
}

std::string ProvisionalText::push(std::string_view text) {
  const auto same = static_cast<size_t>(std::ranges::mismatch(text, shown_).in1 - text.begin());
  shown_.erase(0, same);
  text.remove_prefix(same);
  if (text.empty() || shown_.empty()) return std::string(text);
  shown_.clear();
  return marked("\n[online, the server's own text from here] ") + std::string(text);
}

}  // namespace outrider
