// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "outrider/drafter.h"
#include "speculation/tree/acceptance_estimates.h"
#include "speculation/tree/top_nodes.h"

namespace outrider {

// Trees after verdicts that are not known yet. While the target verifies a tree, the rank that drafted it
// guesses with which node the accepted path ends and which token the target adds, and drafts after that text.
// A request for such a text is answered at once (speculative speculative decoding, 2603.03251).
class GuessedVerdicts {
 public:
  // drafter: drafts after texts that are taken back later (DrafterTraits::drafts_ahead)
  GuessedVerdicts(Drafter& drafter, int64_t vocab_size) : drafter_(&drafter), vocab_size_(vocab_size) {}

  // Copies the tree that was drafted for this text, if there is one, and learns what the last verdict was.
  // `is_continued`: the text begins with the text of the last request. The tree is the one that the drafter
  // would grow now; under the coupled rule, which gives one text for all trees, its size may be older.
  bool take(const DraftRequest& request, bool is_continued, TokenTree& tree);

  // Trees were handed out, after `draft_ms` of drafting if they had to be drafted. The memory behind a
  // request stays as it is until take() or forget().
  void start(std::span<const DraftRequest> requests, std::span<const TokenTree> trees,
             std::optional<double> draft_ms);
  void forget(uint64_t sequence) { outlooks_.erase(sequence); }

  // Drafts after one more verdict of each sequence, unless an order is likely to come too early for it. Looks
  // for an order between its two parts. False: nothing is left that promises to save time. Throws what the
  // drafter throws.
  bool draft_next(const std::function<bool()>& has_order);

 private:
  // The accepted path ends with this node, and the target's token is none of its children.
  struct Ending {
    int node = 0;
    double probability = 0;
  };
  struct Guess {
    int ending = 0;                    // a node
    std::vector<TokenId> tokens = {};  // after the text of the request
    TokenTree tree = TokenTree();
  };
  // The verdicts that one sequence may get, and their drafts.
  struct Outlook {
    DraftRequest request;
    size_t length = 0;  // tokens of the request
    TokenTree tree = TokenTree();
    std::vector<Ending> endings = {};  // not drafted after yet, the likeliest last
    std::vector<Guess> guesses = {};
    double covered = 0;  // the probability that one of the guesses comes true
  };
  // How often the most likely token was the right one.
  struct HitRate {
    double guesses = 2, hits = 1;

    void learn(bool is_hit);
    double value() const { return hits / guesses; }
  };

  std::vector<Ending> endings_of(const TokenTree& tree) const;
  double plan_round();
  bool is_in_time(double gain) const;
  bool add_tokens();
  bool add_trees();
  void learn(const Outlook& outlook, std::span<const TokenId> added);
  bool fits(const DraftRequest& drafted, const DraftRequest& asked) const;
  void cut(const DraftRequest& request, TokenTree& tree);

  Drafter* drafter_;
  int64_t vocab_size_;
  std::unordered_map<uint64_t, Outlook> outlooks_;
  AcceptanceEstimates estimates_;
  HitRate leaf_rate_, inner_rate_;  // of the token after a leaf, and after a node with children
  // Milliseconds, averages of the last ones.
  double draft_ms_ = 0;         // of a draft that had to be made
  double guess_ms_ = 0;         // of draft_next()
  double wait_ms_ = 0;          // from trees to the next request
  double started_ = 0;          // when trees were handed out last
  bool is_waiting_ = false;     // for a request that continues one of them
  bool is_worthwhile_ = false;  // to draft after another verdict
  TopNodes top_nodes_;
  // Scratch of draft_next(), by sequence of the round.
  std::vector<Outlook*> round_;
  std::vector<Guess> drafts_;
  std::vector<std::vector<TokenId>> texts_;
  std::vector<std::vector<uint64_t>> allowed_;
  std::vector<DraftRequest> requests_;
  std::vector<TokenTree> trees_;
};

}  // namespace outrider
