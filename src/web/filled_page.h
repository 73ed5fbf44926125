// SPDX-License-Identifier: Apache-2.0
// Self-contained pages. A page is a folder with page.html, its body, style.css and script.js, made into one
// text by outrider_page() in cmake/outrider.cmake: frame.html here around it, shared.css and shared.js before
// its own.
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// `page` with `json` in place of its "{{data}}", inside a script element of type application/json.
std::string filled_page(std::string_view page, std::string_view json);

}  // namespace outrider
