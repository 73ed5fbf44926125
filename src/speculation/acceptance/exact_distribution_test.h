// SPDX-License-Identifier: Apache-2.0
// Computes the exact distribution of the tokens that drafting and verification emit on a toy model: every
// outcome of every draw is enumerated and weighted in f64.
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

// Enumerates all outcomes one after the other. One uniform number in [0, 1) belongs to each key (position,
// purpose, draw); every draw splits the interval to which earlier draws with that key confined the number.
// Two draws with one key are therefore as dependent as they are in a counter-based generator.
class ForkingRandomness final : public Randomness {
 public:
  bool next();  // starts the next outcome; false when there is none left
  double weight() const { return weight_; }

  // Couples distributions by a shared uniform number instead of Gumbel noise. Each pick has the same
  // distribution as with Gumbel noise, but its outcomes can be enumerated.
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

// Whether a token is allowed after a prefix; an empty function allows all.
using Language = std::function<bool(const Prefix&, TokenId)>;

// A constraint with one state per prefix.
class TinyLanguage final : public TokenConstraint {
 public:
  TinyLanguage(Language language, int vocabulary) : language_(std::move(language)), vocabulary_(vocabulary) {}

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

// Random logits that depend on the whole prefix, and the distribution that LogitsProcessor makes of them.
class ToyModel {
 public:
  struct Options {
    int vocabulary = 2;
    uint64_t seed = 0;
    SamplingParams params;
    uint64_t other_seed = 0;   // seed of a second model that is mixed in
    double other_share = 0.0;  // share of the second model's logits
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

// A node asks for one child per entry; it gets fewer when the drafted distribution has fewer tokens.
struct TreeShape {
  std::vector<TreeShape> children;
};
TreeShape uniform_shape(std::span<const int> widths);  // by depth
std::vector<TreeShape> all_shapes(int drafted);        // all ordered trees with that many drafted nodes

inline constexpr int64_t kToyPromptLength = 3;

enum class Drafting {
  kSampled,     // propose()
  kLikeliest,   // chosen children: the likeliest tokens of the drafted distribution
  kFixed,       // chosen children: tokens that do not depend on the drafted distribution
  kAlternating  // sampled at even depths, likeliest at odd ones
};

// Limits for trees that TreeGrowth grows; they replace the trees of a fixed shape.
struct ToyGrowth {
  GrowthOptions options;
  int max_draft_len = 1;
  int max_nodes = 1;
};

struct ToyDrafter {
  ToyModel::Options draft;
  TreeShape shape;
  Drafting drafting = Drafting::kSampled;
  ChildrenKind kind = ChildrenKind::kSampled;  // kind of the sampled children
  std::optional<ToyGrowth> growth;
  // If set, changes the distribution that a sampled node states, as a broken drafter might.
  std::function<void(Distribution&)> corrupt;
};

struct Scenario : ToyDrafter {
  ToyModel::Options target;
  int length = 1;  // tokens to emit
  int steps = 0;   // steps with drafts, after which the target decodes plainly; 0: all steps draft
  AcceptanceRule rule = AcceptanceRule::kRejection;
  std::vector<ToyDrafter> others;  // their trees are merged into the first drafter's, in this order
  std::function<void(TokenTree&)> prune;
};

inline void merge_trees(TokenTree& tree, const TokenTree& other, int source) { tree.merge(other, source); }

// The functions under test; planted bugs replace one of them.
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

  Prefix run(Randomness& randomness);  // shorter than `length` if the target decodes the rest plainly
  // Adds weight * (distribution of the target's continuations of `output`) to `distribution`.
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
  uint64_t first_draw(const Member& member, int depth) const;

  const Scenario& scenario_;
  const SpeculativeSystem& system_;
  ToyModel target_;
  std::vector<Member> members_;
  TokenTree tree_;
};

struct ExactComparison {
  double total_variation = 0.0;  // between the distribution of the output and the target's distribution
  double total_weight = 0.0;     // sum over all outcomes; 1 up to rounding
  int64_t outcomes = 0;
};
ExactComparison compare_with_target(const Scenario& scenario, const SpeculativeSystem& system = {});

}  // namespace outrider
