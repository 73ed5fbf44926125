// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>

#include "open/drafter_report.h"

namespace outrider {

nlohmann::ordered_json drafters_json(std::span<const DrafterLine> lines);

// null: draft and target have the same tokens. `share_of_text`: of a text's tokens, the share that the draft
// has.
nlohmann::ordered_json vocabularies_json(const std::optional<OtherVocabulary>& other, double share_of_text);

}  // namespace outrider
