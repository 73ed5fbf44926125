// SPDX-License-Identifier: Apache-2.0
#include "server/page/page_text.h"

namespace outrider {

extern const std::string_view kServedPage;

std::string_view page_text() { return kServedPage; }

}  // namespace outrider
