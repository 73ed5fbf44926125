// SPDX-License-Identifier: Apache-2.0
// Self-contained pages. A page is a folder with page.html, style.css and script.js, made into one text by
// outrider_page() in cmake/outrider.cmake; shared.css and shared.js here come before its own.
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// `page` with `json` in place of its "{{data}}", inside a script element of type application/json.
std::string filled_page(std::string_view page, std::string_view json);

}  // namespace outrider
