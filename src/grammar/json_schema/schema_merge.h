// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

using SchemaJson = nlohmann::ordered_json;

// A nullable type as a list with "null"; any other schema as it is.
SchemaJson without_nullable(SchemaJson schema);

// The schema of the values that are valid under both. Members and items that both describe become {"allOf":
// [a, b]}. Errors: keywords that cannot be merged. Precondition: neither has $ref or allOf, and
// nullable types are lists.
Result<SchemaJson> merge_schemas(const SchemaJson& a, const SchemaJson& b, const std::string& path);

}  // namespace outrider
