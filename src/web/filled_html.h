// SPDX-License-Identifier: Apache-2.0
// Self-contained HTML pages. A page is a folder with page.html (its body), style.css and script.js.
// outrider_page() in cmake/outrider.cmake joins them with frame.html, shared.css and shared.js into one text.
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// Replaces "{{data}}" of `page` by `json` inside a script element of type application/json.
std::string filled_html(std::string_view page, std::string_view json);

}  // namespace outrider
