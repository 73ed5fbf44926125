// SPDX-License-Identifier: Apache-2.0
#include "training/core/run_history.h"

#include <nlohmann/json.hpp>

namespace outrider::training {

using nlohmann::json;

json points_json(const std::vector<LossPoint>& points) {
  json array = json::array();
  for (const LossPoint& point : points) array.push_back({point.step, point.loss});
  return array;
}

json points_json(const std::vector<AcceptancePoint>& points) {
  json array = json::array();
  for (const AcceptancePoint& point : points)
    array.push_back({{"step", point.step},
                     {"agreement", point.agreement},
                     {"foreseen", point.foreseen},
                     {"chain", point.chain},
                     {"tree", point.tree},
                     {"accepted", point.accepted},
                     {"ranking", point.ranking},
                     {"shared_tree", point.shared_tree}});
  return array;
}

}  // namespace outrider::training
