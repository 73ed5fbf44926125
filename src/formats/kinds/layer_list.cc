// SPDX-License-Identifier: Apache-2.0
#include "formats/kinds/layer_list.h"

#include <string>
#include <utility>

#include "base/quote.h"

namespace outrider {

Result<std::vector<bool>> read_attention_types(const JsonObject& root, std::string_view other) {
  std::vector<bool> attends;
  OUTRIDER_TRY(const auto types, root.array("layer_types"));
  if (!types) return attends;
  for (const simdjson::dom::element element : *types) {
    std::string_view type;
    if (element.get(type) != simdjson::SUCCESS) return root.wrong_type("layer_types", "a list of strings");
    if (type != "full_attention" && type != other) {
      return root.fail("layer type " + quote(type) + " is not supported; full_attention and " +
                       std::string(other) + " are");
    }
    attends.push_back(type == "full_attention");
  }
  return attends;
}

Status set_layer_kinds(const JsonObject& root, const std::vector<bool>& attends, const LayerKind& other,
                       ModelConfig* config) {
  if (std::ssize(attends) != config->layer_count) {
    return root.fail("'layer_types' must have an entry for each of " + std::to_string(config->layer_count) +
                     " layers, found " + std::to_string(attends.size()));
  }
  std::vector<LayerTraits> layers = config->listed_traits(std::ssize(attends));
  for (size_t i = 0; i < layers.size(); ++i)
    if (!attends[i]) layers[i].kind = &other;
  config->set_layer_traits(std::move(layers));
  return {};
}

}  // namespace outrider
