// SPDX-License-Identifier: Apache-2.0
// Exact distribution of the tokens that drafting and verification put out on a toy model: every outcome of
// every draw is enumerated and weighed in f64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "outrider/token_constraint.h"
#include "sampling/logits_processor.h"
#include "sampling/randomness.h"
#include "speculation/acceptance/verifier.h"
#include "speculation/tree/proposal.h"
#include "speculation/tree/tree_growth.h"

namespace outrider {

// Plays all outcomes one after the other. One uniform in [0, 1) belongs to each key (position, purpose,
// draw); a draw splits the interval that earlier draws with its key have left of it. Two draws that share a
// key are therefore as dependent as they are in a counter-based generator.
class ForkingRandomness final : public Randomness {
 public:
  bool next();  // starts the next outcome; false when there is none left
  double weight() const { return weight_; }

  // Couples distributions by a shared uniform instead of Gumbel noise: the same distribution of each pick,
  // and enumerable.
  TokenId coupled_pick(const Distribution& distribution, int64_t position) override;
  std::vector<TokenId> coupled_top(const Distribution& distribution, int64_t position, int count) override;
  size_t categorical(std::span<const double> weights, int64_t position, RandomPurpose purpose,
                     uint64_t draw) override;
  bool bernoulli(double p, int64_t position, uint64_t draw) override;

 private:
  struct Key {
    int64_t position;
    RandomPurpose purpose;
    uint64_t draw;
    bool operator==(const Key&) const = default;
  };
  struct Interval {
    double low = 0.0;
    double high = 1.0;
    double width() const { return high - low; }
  };
  struct Cell {
    size_t index;
    Interval part;
  };
  struct Fork {
    std::vector<Cell> cells;
    size_t taken = 0;
  };

  size_t draw_from(std::span<const double> weights, const Key& key);
  Interval& interval_of(const Key& key);

  std::vector<Fork> forks_;
  size_t replayed_ = 0;
  bool started_ = false;
  double weight_ = 1.0;
  std::vector<std::pair<Key, Interval>> intervals_;
};

using Prefix = std::vector<TokenId>;

// Whether a token may come after these; empty: all may.
using Language = std::function<bool(const Prefix&, TokenId)>;

// A constraint whose states stand for prefixes.
class ToyLanguage final : public TokenConstraint {
 public:
  ToyLanguage(Language language, int vocabulary) : language_(std::move(language)), vocabulary_(vocabulary) {}

  State state_of(const Prefix& prefix);
  State start() override { return state_of({}); }
  State advance(State state, TokenId token) override;
  std::span<const uint64_t> allowed(State state) override;
  bool is_complete(State) override { return false; }

 private:
  Language language_;
  int vocabulary_;
  std::vector<Prefix> prefixes_;  // by state
  std::map<Prefix, State> states_;
  uint64_t word_ = 0;
};

// Random logits that depend on the whole prefix, through LogitsProcessor.
class ToyModel {
 public:
  struct Options {
    int vocabulary = 2;
    uint64_t seed = 0;
    SamplingParams params;
    uint64_t other_seed = 0;  // of a second model, mixed in with this share
    double other_share = 0.0;
    Language language = {};
  };
  explicit ToyModel(Options options) : options_(std::move(options)) {}

  int vocabulary() const { return options_.vocabulary; }
  const Distribution& distribution(const Prefix& prefix) { return after(prefix).distribution; }
  std::span<const float> logits(const Prefix& prefix) { return after(prefix).logits; }  // without the mask

 private:
  struct Output {
    std::vector<float> logits;
    Distribution distribution;
  };
  const Output& after(const Prefix& prefix);

  Options options_;
  std::unordered_map<uint64_t, Output> outputs_;  // by prefix, read as a number
};

// A node is asked to have one child per entry; it has fewer when the drafted distribution has fewer tokens.
struct TreeShape {
  std::vector<TreeShape> children;
};
TreeShape uniform_shape(std::span<const int> widths);  // by depth
std::vector<TreeShape> all_shapes(int drafted);        // all ordered trees with that many drafted nodes

inline constexpr int64_t kToyPromptLength = 3;

enum class Drafting {
  kSampled,     // propose()
  kLikeliest,   // the likeliest tokens of the drafted distribution, as chosen children
  kFixed,       // tokens that do not depend on the drafted distribution, as chosen children
  kAlternating  // sampled at even depths, likeliest at odd ones
};

// Trees that TreeGrowth grows, instead of those of a shape.
struct ToyGrowth {
  GrowthOptions options;
  int max_depth = 1;
  int max_nodes = 1;
};

struct ToyDrafter {
  ToyModel::Options draft;
  TreeShape shape;
  Drafting drafting = Drafting::kSampled;
  ChildrenKind kind = ChildrenKind::kSampled;  // of sampled children
  std::optional<ToyGrowth> growth;
  std::function<void(Distribution&)>
      corrupt;  // what a broken drafter makes of the distribution of a sampled node
};

struct Scenario : ToyDrafter {
  ToyModel::Options target;
  int length = 1;  // tokens to put out
  int steps = 0;   // with drafts; the target goes on alone after them. 0: all
  AcceptanceRule rule = AcceptanceRule::kRejection;
  std::vector<ToyDrafter> others;  // their trees are merged into the first drafter's, in this order
  std::function<void(TokenTree&)> prune;
};

inline void merge_trees(TokenTree& tree, const TokenTree& other, int source) { tree.merge(other, source); }

// What is under test; planted bugs replace one of these.
struct SpeculativeSystem {
  std::function<int(const ProposalArgs&)> propose = &outrider::propose;
  std::function<void(const VerifyArgs&, Verdict&)> verify = &outrider::verify;
  std::function<void(TokenTree&, const TokenTree&, int)> merge = &merge_trees;
  bool drafters_share_draws = false;
};

// Generates `scenario.length` tokens on the toy models, step by step. Keeps references to both arguments.
class ToyGeneration {
 public:
  ToyGeneration(const Scenario& scenario, const SpeculativeSystem& system);

  Prefix run(Randomness& randomness);  // shorter than `length` where the target goes on alone
  // Adds weight * (distribution of what the target makes of `output`) to `distribution`.
  void add_continuations(const Prefix& output, double weight, std::map<Prefix, double>& distribution);

 private:
  struct Member {
    const ToyDrafter* drafter;
    int source;
    ToyModel model;
    TokenTree tree;
    TreeGrowth growth;
  };

  void draft(const Prefix& output, Randomness& randomness);
  const Distribution& target_distribution_after(const Prefix& output, int node);
  void grow(Member& member, const TreeShape& shape, int node, Prefix& path, Randomness& randomness);
  void grow_by_policy(Member& member, const Prefix& output, Randomness& randomness);
  uint64_t first_draw(const Member& member) const;

  const Scenario& scenario_;
  const SpeculativeSystem& system_;
  ToyModel target_;
  std::vector<Member> members_;
  TokenTree tree_;
};

struct ExactComparison {
  double total_variation = 0.0;  // between the distribution of the output and that of the target alone
  double total_weight = 0.0;     // of all outcomes; 1 but for rounding
  int64_t outcomes = 0;
};
ExactComparison compare_with_target(const Scenario& scenario, const SpeculativeSystem& system = {});

}  // namespace outrider
