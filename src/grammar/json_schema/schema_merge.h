// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

using SchemaJson = nlohmann::ordered_json;

// Keywords that say nothing about which values are valid.
bool is_annotation(std::string_view keyword);

// A schema that what is valid under both is valid under; neither has $ref or allOf. Members and items that
// both describe become {"allOf": [a, b]}. Errors: keywords that cannot be joined.
Result<SchemaJson> merge_schemas(const SchemaJson& a, const SchemaJson& b, const std::string& path);

}  // namespace outrider
