// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace outrider {

// What GET / answers: one page that needs nothing but this server. It carries a Content-Security-Policy that
// allows no other script or style. It uses
//   GET  /stats  while visible: {"model", "drafter", "running", "waiting", "max_batch", "pages",
//   "used_pages",
//        "speculation": {"acceptance_length", "acceptance_rate", "speedup"}}
//   POST /v1/chat/completions with "stream", "stream_options": {"include_usage": true} and
//        "speculative": {"mode": "off|fixed|auto", "budget": nodes, "trace": "detailed"}; and of each chunk's
//        choice "delta": {"content"} and "speculation", as speculation_writer.h has it.
//        Without "speculation" it shows the text alone.
//   An API key, where one was entered, goes along as "Authorization: Bearer".
std::string_view page_text();

}  // namespace outrider
