// SPDX-License-Identifier: Apache-2.0
// The routes about adapters of vLLM (load_lora_adapter, unload_lora_adapter) and of llama-server
// (lora-adapters).
#pragma once

#include <string>
#include <string_view>

#include "server/api/api_limits.h"
#include "server/api/request_field.h"
#include "server/api/served_model.h"

namespace outrider {

// [{"id", "name", "path", "scale"}], where requests that choose no adapters have this scale.
std::string adapters_body(const ServedModel& model);

// {"lora_name", "lora_path"}, the path within the folder of --lora-folder
ApiResult<std::string> load_adapter_body(std::string_view body, const ServedModel& model,
                                         const ApiLimits& limits);
// {"lora_name"}
ApiResult<std::string> unload_adapter_body(std::string_view body, const ServedModel& model,
                                           const ApiLimits& limits);
// [{"id", "scale"}]; adapters that are not listed get 0
ApiResult<std::string> set_adapters_body(std::string_view body, const ServedModel& model,
                                         const ApiLimits& limits);

}  // namespace outrider
