// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/model_config.h"
#include "models/weights/weight_loader.h"

namespace outrider {

// The weights of a norm with their kind.
struct Norm {
  NormKind kind = NormKind::kRms;
  float epsilon = 0;
  std::vector<float> weight;  // [size]; empty: there is no norm
  std::vector<float> bias;    // [size], or empty

  bool empty() const { return weight.empty(); }
  int64_t parameter_count() const { return static_cast<int64_t>(weight.size() + bias.size()); }
};

// Appends the weight of a norm of this model.
Status load_norm_weight(WeightLoader& loader, const NormTraits& traits, const std::string& name, int64_t size,
                        std::vector<float>& weight);

// Loads the norm `name` of `size` numbers.
Status load_norm(WeightLoader& loader, const NormTraits& traits, const std::string& name, int64_t size,
                 Norm& norm);

}  // namespace outrider
