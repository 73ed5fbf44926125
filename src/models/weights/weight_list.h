// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "models/weights/norm.h"
#include "models/weights/weight_loader.h"

namespace outrider {

// The weights of a part of a network, in an order that equal parts share.
struct WeightList {
  std::vector<const Projection*> projections;
  // Projections of one shape, among those above, which rows choose from or which parts of rows pass.
  std::vector<std::vector<const Projection*>> stacks = {};
  // Projections, among those above, that only a choice of experts reads: routers and experts.
  std::vector<const Projection*> choices = {};
  std::vector<const Norm*> norms;
  std::vector<const std::vector<float>*> numbers;

  int64_t parameter_count() const;
  int64_t bytes() const;
};

}  // namespace outrider
