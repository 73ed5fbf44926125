// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "outrider/token_tree.h"
#include "speculation/policy/step_costs.h"
#include "speculation/tree/acceptance_estimates.h"

namespace outrider {

// Cuts the trees of a batch down to the nodes that are worth their rows in the target pass. The likeliest
// nodes of all trees together are kept, as many as maximise the expected tokens minus the value of the time
// of their rows. Keeps its scratch memory between steps.
class TreePruner {
 public:
  // Reserves memory for `trees` trees of `nodes` nodes, the roots included.
  void reserve(size_t trees, size_t nodes);
  void clear();
  // Adds a tree of this step, which must outlive keep().
  void add(TokenTree& tree, const AcceptanceEstimates& estimates);

  struct Terms {
    double rate = 0.0;        // tokens that a ms of the step must bring
    double other_rows = 0.0;  // drafted rows of trees that are not cut
    double max_rows = 0.0;    // limit of the drafted rows of all trees
  };
  // Cuts the trees added since clear(); returns the number of nodes kept.
  size_t keep(const Terms& terms, const StepCosts& costs);

 private:
  size_t best_count(const Terms& terms, const StepCosts& costs) const;

  struct Candidate {
    double probability;  // that the whole path to the node is accepted
    size_t tree;
    int node;
  };
  std::vector<TokenTree*> trees_;
  std::vector<Candidate> candidates_;
  std::vector<double> products_;
  std::vector<uint8_t> kept_;
};

}  // namespace outrider
