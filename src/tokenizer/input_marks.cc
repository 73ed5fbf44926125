// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/input_marks.h"

namespace outrider {

std::string drop_input_marks(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t start = 0; (start = text.find(kMarkStart)) != std::string_view::npos;) {
    plain += text.substr(0, start);
    text.remove_prefix(start + kMarkStart.size());
    if (text.starts_with(kMark)) {
      text.remove_prefix(kMark.size());
    } else {
      plain += kMarkStart;
      if (text.starts_with(kEscape)) text.remove_prefix(kEscape.size());
    }
  }
  return plain.append(text);
}

}  // namespace outrider
