// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "corpus/context_search.h"
#include "drafters/suffix/continuation_tree.h"
#include "drafters/suffix/suffix_tree.h"

namespace outrider {

// Tokens that followed the end of a sequence where it occurred before: a path or a tree.
struct SuffixDraft {
  struct Node {
    TokenId token = 0;
    int parent = -1;              // index of a node before it; -1: the end of the sequence
    double probability = 0;       // that it follows its parent, by the counts
    double path_probability = 0;  // that it follows the end of the sequence, through its parents
  };
  int match = 0;     // tokens at the end of the sequence that occurred before
  double score = 0;  // sum of path probabilities: expected number of accepted tokens
  std::vector<Node> nodes;
};

struct SuffixDraftLimits {
  bool is_tree = false;  // the likeliest tree, else the path of likeliest tokens
  int max_nodes = 4;
  int max_draft_len = 4;
  double nodes_per_match = 1.0;  // nodes per token matched, at most
  double min_path_probability = 0.1;
};

// SuffixDecoding's choice (arXiv 2411.04975): of the drafts that the matches of all lengths give, the one
// with the highest score, the longest match among equals.
class SuffixSpeculator {
 public:
  // places[m - 1] is the place of the sequence's last m tokens in `tree`. Replaces `best` where it finds a
  // better draft.
  void improve(const SuffixTree& tree, std::span<const SuffixPlace> places, const SuffixDraftLimits& limits,
               SuffixDraft& best);

  // Tries the ends of `context` in a corpus in the same way. Ends that stand at the same places as a longer
  // one give no better draft; the longest kMaxEnds of all others are tried.
  void improve(ContextSearch& search, ContinuationTree& tree, std::span<const TokenId> context,
               const SuffixDraftLimits& limits, SuffixDraft& best);
  // The draft after one match.
  void draft(const SuffixTree& tree, SuffixPlace match, const SuffixDraftLimits& limits, SuffixDraft& draft);

 private:
  static constexpr int kMaxEnds = 4;

  struct Candidate {
    SuffixPlace place;
    int number = 0;  // of equally likely ones the first leaves the heap first
    SuffixDraft::Node node;
    bool operator<(const Candidate& other) const {
      return node.path_probability != other.node.path_probability
                 ? node.path_probability < other.node.path_probability
                 : number > other.number;
    }
  };

  template <typename Tree>
  void improve_after(Tree& tree, SuffixPlace match, const SuffixDraftLimits& limits, SuffixDraft& best);
  template <typename Tree>
  void grow(Tree& tree, SuffixPlace match, const SuffixDraftLimits& limits, SuffixDraft& draft);

  SuffixDraft trial_;
  std::vector<Candidate> heap_;
};

}  // namespace outrider
