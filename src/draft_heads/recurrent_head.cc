// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/recurrent_head.h"

#include <fmt/format.h>

#include "config/methods.h"
#include "formats/hf/hf_config.h"

namespace outrider {

void RecurrentHead::join(FloatAddress a, FloatAddress b, FloatAddress out, int64_t rows, int64_t dim) {
  backend_.copy_strided({a, dim, out, 2 * dim, rows, dim});
  backend_.copy_strided({b, dim, out + dim, 2 * dim, rows, dim});
}

Result<JsonObject> layer_config_object(const HeadFile& head) {
  for (const char* key : {"transformer_layer_config", "text_config"}) {
    OUTRIDER_TRY(const auto nested, head.config.root().object(key));
    if (nested) return *nested;
  }
  return head.config.root();
}

Result<ModelConfig> read_head_config(const HeadFile& head, const Model& target) {
  OUTRIDER_TRY(const JsonObject object, layer_config_object(head));
  OUTRIDER_TRY(ModelConfig config, read_layer_config(object));
  const auto check = [&](std::string_view key, int64_t found, int64_t expected) -> Status {
    if (found == expected) return {};
    return head.fail(fmt::format("this {} drafter has {} {}, the target {}; it was made for another target",
                                 method_name(head.method), key, found, expected));
  };
  OUTRIDER_RETURN_IF_ERROR(check("hidden_size", config.hidden_size, target.config().hidden_size));
  OUTRIDER_RETURN_IF_ERROR(check("vocab_size", config.vocab_size, target.config().vocab_size));
  return config;
}

}  // namespace outrider
