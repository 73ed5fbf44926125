// SPDX-License-Identifier: Apache-2.0
#include "formats/number_limit.h"

#include <string>

namespace outrider {

Status check_limit(const NumberLimit& limit) {
  if (limit.value >= limit.min && limit.value <= limit.max) return {};
  return input_error("model configuration: " + std::string(limit.name) + " must be from " +
                     std::to_string(limit.min) + " to " + std::to_string(limit.max) + ", found " +
                     std::to_string(limit.value));
}

Status check_limits(std::span<const NumberLimit> limits) {
  for (const NumberLimit& limit : limits) OUTRIDER_RETURN_IF_ERROR(check_limit(limit));
  return {};
}

}  // namespace outrider
