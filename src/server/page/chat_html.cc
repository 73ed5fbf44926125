// SPDX-License-Identifier: Apache-2.0
#include "server/page/chat_html.h"

namespace outrider {

extern const std::string_view kChatHtml;

std::string_view chat_html() { return kChatHtml; }

}  // namespace outrider
