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
Status read_context(Settings& settings, const OptionValue& value);  // "8192", "8k", "auto"
std::string context_text(const Settings& settings);
Status read_root_path(Settings& settings, const OptionValue& value);  // "/llm"
std::string root_path_text(const Settings& settings);
// Each text has one or more, separated by commas.
Status read_api_keys(Settings& settings, const OptionValue& value);
Status read_model_names(Settings& settings, const OptionValue& value);
std::string model_names_text(const Settings& settings);
Status read_origins(Settings& settings, const OptionValue& value);  // or a list in JSON
std::string origins_text(const Settings& settings);
// Routes separated by commas, in each text.
Status read_routes(Settings& settings, const OptionValue& value);
std::string routes_text(const Settings& settings);
Status read_remote_drafting(Settings& settings, const OptionValue& value);  // a flag
Status read_logit_bias(Request& request, const OptionValue& value);         // "ID=VALUE" in each text
Status read_forbidden(Request& request, const OptionValue& value);          // "1,2" in each text

}  // namespace outrider
