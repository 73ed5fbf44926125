// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "outrider/result.h"

namespace outrider {

// A number of a model configuration that must be within limits.
struct NumberLimit {
  const char* name;
  int64_t value;
  int64_t min;
  int64_t max;
};

Status check_limit(const NumberLimit& limit);
Status check_limits(std::span<const NumberLimit> limits);

}  // namespace outrider
