// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/drafter_json.h"

#include <nlohmann/json.hpp>

namespace outrider {

nlohmann::ordered_json drafters_json(std::span<const DrafterLine> lines) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const DrafterLine& line : lines) {
    json.push_back({{"state", line.state},
                    {"method", line.method},
                    {"name", line.name},
                    {"place", line.place},
                    {"path", line.path},
                    {"reason", line.reason}});
  }
  return json;
}

nlohmann::ordered_json vocabularies_json(const std::optional<OtherVocabulary>& other, double share_of_text) {
  if (!other) return nullptr;
  return {{"draft", other->draft.string()},
          {"target_tokens", other->target_tokens},
          {"draft_tokens", other->draft_tokens},
          {"shared_tokens", other->shared},
          {"share_of_text", share_of_text}};
}

}  // namespace outrider
