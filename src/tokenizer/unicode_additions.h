// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// The characters that Unicode 15 and 16 added to a general category ("Lu") or a group of them ("L"), as
// members of a PCRE2 set; empty for any other property. PCRE2 10.42 knows Unicode 14, the tokenizers package
// Unicode 16.
std::string unicode_additions(std::string_view property);

}  // namespace outrider
