// SPDX-License-Identifier: Apache-2.0
#include "models/weights/norm.h"

namespace outrider {

Status load_norm_weight(WeightLoader& loader, const NormTraits& traits, const std::string& name, int64_t size,
                        std::vector<float>& weight) {
  const size_t begin = weight.size();
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(name, size, weight));
  for (size_t i = begin; i < weight.size() && traits.adds_one; ++i) weight[i] += 1.0f;
  return {};
}

Status load_norm(WeightLoader& loader, const NormTraits& traits, const std::string& name, int64_t size,
                 Norm& norm) {
  norm.kind = traits.kind;
  norm.epsilon = traits.epsilon;
  if (traits.has_bias) OUTRIDER_RETURN_IF_ERROR(loader.read_vector(name + ".bias", size, norm.bias));
  if (traits.has_weight) return load_norm_weight(loader, traits, name + ".weight", size, norm.weight);
  norm.weight.assign(static_cast<size_t>(size), 1.0f);
  return {};
}

}  // namespace outrider
