// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "outrider/token_tree.h"
#include "speculation/policy/step_costs.h"
#include "speculation/tree/acceptance_estimates.h"

namespace outrider {

// Cuts the trees of a batch down to the nodes that are worth their rows, those likeliest to be accepted
// first, whoever drafted them. Keeps its scratch memory between steps.
class TreePruner {
 public:
  // Makes room for so many trees of so many nodes, the root included.
  void reserve(size_t trees, size_t nodes);
  void clear();
  // The tree must outlive keep().
  void add(TokenTree& tree, const AcceptanceEstimates& estimates);

  struct Terms {
    double rate = 0.0;        // tokens that a millisecond must bring
    double other_rows = 0.0;  // drafted rows that stay in any case
    double max_rows = 0.0;    // of all drafts together
  };
  // Leaves as many nodes as bring the most beyond what their time is worth; returns how many.
  size_t keep(const Terms& terms, const StepCosts& costs);

 private:
  size_t worthwhile(const Terms& terms, const StepCosts& costs) const;

  struct Candidate {
    double probability;  // that all nodes down to it are accepted
    size_t tree;
    int node;
  };
  std::vector<TokenTree*> trees_;
  std::vector<Candidate> candidates_;
  std::vector<double> products_;
  std::vector<uint8_t> kept_;
};

}  // namespace outrider
