// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace outrider {

// The body of GET /: the chat page, which needs no other server. Its Content-Security-Policy allows no other
// script or style, and no text to be parsed as HTML. It uses
//   GET  /stats  while visible: {"model", "drafter", "running", "waiting", "max_batch", "pages",
//   "used_pages",
//        "speculation": {"acceptance_length", "acceptance_rate", "drafted", "speedup"}}
//   GET  /props, the defaults of sampling, and /v1/models, the models to choose from
//   POST /v1/chat/completions with "stream", "stream_options": {"include_usage": true} and
//        "speculative": {"mode": "off|fixed|auto", "budget": nodes, "trace": "detailed"}. From the choice of
//        each chunk it reads "delta": {"content", "reasoning_content"} and "speculation"
//        (api/answers/speculation_writer.h). Without "speculation" it shows only the text.
//   An API key that the user entered is sent as "Authorization: Bearer".
std::string_view chat_html();

}  // namespace outrider
