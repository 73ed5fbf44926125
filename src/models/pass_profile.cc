// SPDX-License-Identifier: Apache-2.0
#include "models/pass_profile.h"

#include <algorithm>

namespace outrider {

void PassProfile::add(std::string_view name, const OperationCost& cost, double seconds) {
  auto found = std::ranges::find(operations_, name, &OperationTimes::name);
  if (found == operations_.end()) {
    operations_.push_back({.name = std::string(name), .cost = {.inputs = cost.inputs}});
    found = std::prev(operations_.end());
  }
  ++found->calls;
  found->seconds += seconds;
  found->cost.bytes += cost.bytes;
  found->cost.operations += cost.operations;
}

}  // namespace outrider
