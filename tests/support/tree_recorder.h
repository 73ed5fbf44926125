// SPDX-License-Identifier: Apache-2.0
// Records the trees of another drafter.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/drafter_wrapper.h"

namespace outrider {

struct Drafted {
  std::vector<TokenId> tokens;
  std::vector<int> parents;
  std::vector<double> probabilities;
  std::vector<std::vector<double>> distributions;

  bool operator==(const Drafted&) const = default;
};

inline Drafted drafted_in(const TokenTree& tree) {
  Drafted drafted;
  drafted.tokens.assign(tree.tokens().begin(), tree.tokens().end());
  drafted.parents.assign(tree.parents().begin(), tree.parents().end());
  for (int node = 0; node < tree.size(); ++node) drafted.probabilities.push_back(tree.probability(node));
  for (const Proposal& proposal : tree.proposals()) {
    if (proposal.distribution >= 0)
      drafted.distributions.push_back(tree.distribution_at(proposal.distribution).probabilities);
  }
  return drafted;
}

// Trees by seed, text, depth and nodes.
using Question = std::tuple<uint64_t, std::vector<TokenId>, int, int>;
using Trees = std::map<Question, Drafted>;

class TreeRecorder final : public DrafterWrapper {
 public:
  TreeRecorder(std::shared_ptr<Drafter> drafter, Trees& trees)
      : DrafterWrapper(std::move(drafter)), trees_(trees) {}

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    std::vector<DraftRequest> asked(requests.begin(), requests.end());
    for (DraftRequest& request : asked) request.wants_probabilities = true;
    OUTRIDER_RETURN_IF_ERROR(DrafterWrapper::draft(asked, trees));
    for (size_t i = 0; i < requests.size(); ++i) record(requests[i], trees[i]);
    return {};
  }

 private:
  void record(const DraftRequest& request, const TokenTree& tree) {
    trees_[{request.sampling->seed,
            {request.tokens.begin(), request.tokens.end()},
            request.max_draft_len,
            request.max_nodes}] = drafted_in(tree);
  }

  Trees& trees_;
};

}  // namespace outrider
