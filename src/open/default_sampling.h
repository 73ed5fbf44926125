// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/settings.h"

namespace outrider {

// The sampling parameters that were given by an option, a file or the environment.
SamplingChoices given_choices(const Settings& settings);

// The defaults of chats: the given parameters, else what the model recommends (generation_config.json), else
// `otherwise`.
SamplingParams default_sampling(SamplingParams otherwise, const SamplingChoices& given,
                                const SamplingChoices& recommended);

}  // namespace outrider
