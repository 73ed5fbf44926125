// SPDX-License-Identifier: Apache-2.0
// The rows of the option table whose texts have a form of their own. Errors: the text has another form.
#pragma once

#include <string>

#include "config/option_member.h"
#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

constexpr NumberRange kLogitBiases = {-1e4, 1e4};

Status read_memory(Settings& settings, const OptionValue& value);      // "800M"
Status read_row_counts(Settings& settings, const OptionValue& value);  // "1,8,16x3"
std::string row_counts_text(const Settings& settings);
Status read_remote_drafting(Settings& settings, const OptionValue& value);  // a flag
Status read_logit_bias(Request& request, const OptionValue& value);         // "ID=VALUE" in each text
Status read_forbidden(Request& request, const OptionValue& value);          // "1,2" in each text

}  // namespace outrider
