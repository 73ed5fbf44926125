// SPDX-License-Identifier: Apache-2.0
#include "web/filled_html.h"

#include "base/check.h"

namespace outrider {

std::string filled_html(std::string_view page, std::string_view json) {
  constexpr std::string_view kPlace = "{{data}}";
  const size_t place = page.find(kPlace);
  OUTRIDER_CHECK(place != std::string_view::npos);
  std::string filled(page.substr(0, place));
  filled.reserve(page.size() + json.size());
  // Escaped, no text of the JSON can end the script element or begin a comment in it.
  for (const char c : json) c == '<' ? filled += "\\u003c" : filled += c;
  filled += page.substr(place + kPlace.size());
  return filled;
}

}  // namespace outrider
