// SPDX-License-Identifier: Apache-2.0
#include "formats/hf/hf_names.h"

#include "formats/families.h"

namespace outrider {

std::string hf_tensor_name(const ModelConfig& config, std::string_view expected) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!expected.starts_with(kLayers)) return std::string(expected);
  const size_t begin = expected.find('.', kLayers.size()) + 1;
  const size_t end = expected.rfind('.');
  const std::string_view part = expected.substr(begin, end - begin);
  if (part == "layer_scalar") return std::string(expected.substr(0, end));  // a buffer, not a weight
  for (const TensorName& name : find_family(config.family)->hf_names) {
    if (name.expected == part)
      return std::string(expected.substr(0, begin)).append(name.stored).append(expected.substr(end));
  }
  return std::string(expected);
}

}  // namespace outrider
