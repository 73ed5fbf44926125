// SPDX-License-Identifier: Apache-2.0
// The rows of the option table whose values take more than an assignment. Errors: the text has another form.
#pragma once

#include "config/converted_option.h"
#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

Status set_weights(Settings& settings, const OptionValue& value);
Status set_kv_cache_type(Settings& settings, const OptionValue& value);
Status set_memory(Settings& settings, const OptionValue& value);
Status set_pinning(Settings& settings, const OptionValue& value);
Status set_pooling(Settings& settings, const OptionValue& value);
Status set_prompt_ids(Settings& settings, const OptionValue& value);
Status set_row_counts(Settings& settings, const OptionValue& value);
Status set_batch_sizes(Settings& settings, const OptionValue& value);
Status set_prompt_lengths(Settings& settings, const OptionValue& value);
Status set_acceptance(Settings& settings, const OptionValue& value);
Status set_logit_bias(Settings& settings, const OptionValue& value);
Status set_stop(Settings& settings, const OptionValue& value);

}  // namespace outrider
