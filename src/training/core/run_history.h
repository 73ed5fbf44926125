// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace outrider::training {

struct LossPoint {
  int64_t step = 0;
  double loss = 0.0;
};

// The quality of a learned drafter at one step.
struct AcceptancePoint {
  int64_t step = 0;
  std::vector<double> agreement;      // by depth: share of held-out drafts that are right up to this depth
  double foreseen = 0.0;              // tokens per target pass of a chain, computed from `agreement`
  double chain = 0.0, tree = 0.0;     // tokens per target pass as served, greedily; 0: not served here
  std::vector<double> accepted = {};  // by depth: share of the chain's drafts accepted as served
  double ranking = 1.0;               // temperature that ranked the tree's nodes best
  double shared_tree = 0.0;  // tokens per target pass of one tree with the drafts it complements; 0: none
};

// The figure by which the best checkpoint is chosen, in tokens per target pass.
inline double worth(const AcceptancePoint& point) {
  if (point.shared_tree > 0.0) return point.shared_tree;
  return point.tree > 0.0 ? point.tree : point.foreseen;
}

// Losses of a run so far: `training` are means since the previous point.
struct RunHistory {
  std::vector<LossPoint> training;
  std::vector<LossPoint> held_out;
  std::vector<AcceptancePoint> acceptance;  // learned drafters only
  double unfinished = 0.0;                  // sum of the losses since the last point of `training`
};

// The points as in checkpoints and reports: losses as [step, loss], the others as objects.
nlohmann::json points_json(const std::vector<LossPoint>& points);
nlohmann::json points_json(const std::vector<AcceptancePoint>& points);

}  // namespace outrider::training
