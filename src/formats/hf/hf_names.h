// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "formats/model_config.h"

namespace outrider {

// The name that a tensor of expected_tensors() has in the files of the configuration's family.
std::string hf_tensor_name(const ModelConfig& config, std::string_view expected);

}  // namespace outrider
