// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "server/api/request_field.h"
#include "server/api/requests/generation_spec.h"

namespace outrider {

inline constexpr size_t kMaxRequestAdapters = 16;
inline constexpr double kMaxAdapterScale = 1e4;

// "model": the served model, or one of its adapters, which the request then uses unless "lora" says
// otherwise.
ApiStatus read_model(const RequestField& field, GenerationSpec& spec);
// "lora": the adapters of the request, each as a name, as {"name", "scale"} or, by its place in the list of
// adapters, as llama-server's {"id", "scale"}; an empty list: none.
ApiStatus read_adapters(const RequestField& field, GenerationSpec& spec);

}  // namespace outrider
