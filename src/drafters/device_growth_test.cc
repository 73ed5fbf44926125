// SPDX-License-Identifier: Apache-2.0
// Trees that grow on a device are the trees of TreeGrowth, for random shapes, limits and logits with ties,
// infinities and NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "base/counter_rng.h"
#include "base/sanitized.h"
#include "device/emulated_device.h"
#include "drafters/device_trees.h"
#include "speculation/tree/tree_choices.h"
#include "speculation/tree/tree_growth.h"

namespace outrider {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int kTrees = repetitions(10'000);
constexpr int kPosition = 9;  // of the first pending token
constexpr int kMask = 5;

struct RandomDraws {
  std::mt19937_64 engine;
  int below(int end) { return static_cast<int>(engine() % static_cast<uint64_t>(end)); }
};

using Path = std::vector<TokenId>;

// Logits after a path, of one of many kinds, which it decides.
std::vector<float> logits_after(const Path& path, uint64_t seed, int vocab) {
  for (const TokenId token : path) seed = mix64(seed * 31 + static_cast<uint64_t>(token) + 1);
  RandomDraws random{std::mt19937_64(seed)};
  std::vector<float> logits(static_cast<size_t>(vocab));
  const int kind = random.below(14);
  const double deviation = kind == 0 ? 1e37 : kind == 1 ? 1e-40 : kind == 2 ? 1e-5 : 2.0;
  for (float& logit : logits) {
    logit = static_cast<float>(std::normal_distribution<double>(0.0, deviation)(random.engine));
    if (kind == 3) logit = std::round(logit);                             // ties
    if (kind == 4) logit = 2.5F;                                          // all are equal
    if (kind == 5 && random.below(3) == 0) logit = std::nanf("");         // gaps
    if (kind == 6 && random.below(3) != 0) logit = -kInf;                 // most are impossible
    if (kind == 7 && random.below(5) == 0) logit = kInf;                  // some share all mass
    if (kind == 8) logit = random.below(9) != 0 ? -kInf : std::nanf("");  // there is none
    if (kind == 9) logit = random.below(2) == 0 ? 0.0F : -0.0F;
    if (kind == 10) logit *= 40.0F;                                              // one takes all
    if (kind == 11) logit = logit > 0 ? 3.0F + logit * 1e-30F : logit * 1e-30F;  // ties of shares
  }
  return logits;
}

SpeculativeOptions random_options(RandomDraws& random) {
  SpeculativeOptions options;
  options.max_draft_len = 1 + random.below(5);
  options.draft_temperature = random.below(3) == 0 ? 1.4 : 1.0;
  options.ranking_temperature = random.below(3) == 0 ? 0.6 : 0.0;
  options.tree.children = random.below(3) == 0 ? ChildrenChoice::kTop : ChildrenChoice::kSampled;
  switch (random.below(4)) {
    case 0:
      options.tree.kind = TreeKind::kStatic;
      options.tree.expansion.clear();
      for (int level = 0; level < 1 + random.below(5); ++level)
        options.tree.expansion.push_back(1 + random.below(level < 2 ? 4 : 2));
      break;
    case 1:
      options.tree.kind = TreeKind::kChoices;
      options.tree.choices = first_choices(published_choices(), 4, 1 + static_cast<size_t>(random.below(63)));
      break;
    case 2:
      options.tree.kind = random.below(3) == 0 ? TreeKind::kChain : TreeKind::kDynamic;
      options.tree.dynamic_tree_max_top_k = 1 + random.below(3);
      options.tree.max_total_draft_tokens = 1 + random.below(12);
      break;
    default:
      options.tree.kind = TreeKind::kDynamic;
      options.tree.dynamic_tree_max_top_k = 1 + random.below(10);
      options.tree.max_total_draft_tokens = 1 + random.below(60);
  }
  return options;
}

SamplingParams random_sampling(RandomDraws& random) {
  const double temperatures[] = {0.0, 0.0, 1.0, 0.7, 0.1, 1.7, 1e-6, 50.0};
  SamplingParams sampling;
  sampling.temperature = temperatures[random.below(8)];
  sampling.min_p = random.below(4) == 0 ? 0.05 : 0.0;
  sampling.top_k = random.below(3) == 0 ? 1 + random.below(30) : 0;
  sampling.seed = random.engine();
  return sampling;
}

// A sequence of a problem.
struct Drafted {
  std::vector<TokenId> tokens = std::vector<TokenId>(kPosition + 1, 1);
  SamplingParams sampling;
  uint64_t seed = 0;
  int levels = 0, nodes = 0, children = 0;

  DraftRequest request(uint64_t index) const {
    return {.tokens = tokens,
            .max_draft_len = levels,
            .max_nodes = nodes,
            .max_children = children,
            .sampling = &sampling,
            .sample_index = index};
  }
};

struct Problem {
  SpeculativeOptions options;
  int vocab = 0;
  std::vector<Drafted> sequences = {};
  bool is_shared = false;  // a level has the same logits whatever the path
  int block_size = 0;      // of a pass that drafts all levels; 0: there is none

  std::vector<float> logits(size_t sequence, Path path) const {
    if (is_shared) std::ranges::fill(path, 0);
    return logits_after(path, sequences[sequence].seed, vocab);
  }
};

Problem random_problem(RandomDraws& random) {
  Problem problem{.options = random_options(random)};
  const int vocabs[] = {1, 7, 31, 40, 90, 260};
  problem.vocab = random.below(60) == 0 ? 1500 : vocabs[random.below(6)];
  problem.is_shared = random.below(4) == 0;
  problem.block_size = random.below(3) == 0 ? 2 + random.below(7) : 0;
  const int nodes = max_tree_nodes(problem.options);
  for (int i = 0; i < 1 + random.below(4); ++i) {
    Drafted drafted{.sampling = random_sampling(random), .seed = random.engine()};
    drafted.nodes = random.below(3) == 0 ? 1 + random.below(nodes) : nodes;
    drafted.levels = std::min({problem.options.max_draft_len, nodes, drafted.nodes});
    if (random.below(4) == 0) drafted.levels = random.below(drafted.levels + 1);
    if (random.below(5) == 0) drafted.children = 1 + random.below(3);
    problem.sequences.push_back(drafted);
  }
  return problem;
}

TokenTree tree_here(const Problem& problem, size_t index) {
  const Drafted& drafted = problem.sequences[index];
  const auto policy = make_tree_policy(problem.options);
  const GrowthOptions options = growth_options(problem.options, policy.get());
  TokenTree tree(1);
  if (drafted.levels == 0) return tree;
  const DraftRequest request = drafted.request(index);
  TokenHistory history;
  TreeGrowth growth;
  growth.start(options, request, tree, history);
  std::vector<float> logits;
  while (!growth.frontier().empty()) {
    const std::vector<int> frontier(growth.frontier().begin(), growth.frontier().end());
    growth.expand([&](size_t i) {
      Path path;
      for (int node = frontier[i]; node > 0; node = tree.parent(node))
        path.insert(path.begin(), tree.token(node));
      logits = problem.logits(index, path);
      return std::span<const float>(logits);
    });
  }
  return tree;
}

// The growth of a problem's trees in the memory of an emulation.
class Growth {
 public:
  Growth(EmulatedDevice& device, const Problem& problem)
      : problem_(problem),
        launcher_(device),
        growth_(problem.options),
        sequences_(static_cast<int>(problem.sequences.size())),
        levels_(std::min(problem.options.max_draft_len, max_tree_nodes(problem.options))),
        nodes_(max_tree_nodes(problem.options)),
        rows_(device, {.rows = std::max(2, growth_.width()) * sequences_,
                       .sequences = sequences_,
                       .max_length = 100 + growth_.expanded_nodes(),
                       .page_size = 4,
                       .tail_size = levels_}),
        block_(device, block_shape(problem)),
        causal_block_(device, block_shape(problem)),
        chooser_(device,
                 {.rows = int64_t{growth_.width()} * sequences_,
                  .vocab_size = problem.vocab,
                  .row_size = problem.vocab},
                 {}) {
    EXPECT_TRUE(growth_.is_possible());
    set_pages();
    make_args();
  }

  void run() {
    launch(KernelName::kStartTrees, {});
    int64_t rows = sequences_;
    for (int level = 0; level < levels_ && *going_.data() != 0; ++level) {
      logits_.resize(static_cast<size_t>(rows * problem_.vocab));
      for (int64_t row = 0; row < rows; ++row) set_logits(row);
      args_.first.choice =
          chooser_.prepare(launcher_, {.numbers = FloatAddress(reinterpret_cast<uintptr_t>(logits_.data())),
                                       .places = rows_.places(),
                                       .rows = rows,
                                       .period = sequences_});
      launcher_.launch_items(KernelName::kListFirst, args_.first, rows * args_.first.choice.parts);
      launch(KernelName::kGrowTrees, {.warps = 4});
      rows = int64_t{problem_.is_shared ? 1 : growth_.width()} * sequences_;
    }
    EXPECT_EQ(*going_.data(), 0);
    if (growth_.drops()) launch(KernelName::kCutTrees, {.blocks = sequences_, .warps = 3});
  }
  // The places of a block follow the pending token, and see all of the block, or none after them.
  void expect_block() const {
    for (int place = 0; place < problem_.block_size; ++place) {
      for (int i = 0; i < sequences_; ++i) {
        const int row = place * sequences_ + i, position = kPosition + place;
        const bool drafts = problem_.sequences[static_cast<size_t>(i)].levels > 0;
        const simt::PassRows& seen = args_.block;
        EXPECT_EQ(seen.tokens.data[row], !drafts ? 0 : place == 0 ? 1 : kMask);
        EXPECT_EQ(seen.positions.data[row], drafts ? position : 0);
        EXPECT_EQ(seen.slots.data[row], drafts ? position : -1);  // pages are in order
        EXPECT_EQ(seen.entries.data[4 * row + 1], drafts ? kPosition + problem_.block_size : 0);
        EXPECT_EQ(args_.causal_block.entries.data[4 * row + 1], drafts ? position + 1 : 0);
      }
    }
  }
  int drafted(int sequence) const { return drafted_[static_cast<size_t>(sequence)]; }
  int token(int node, int sequence) const { return tokens_[place(node, sequence)]; }
  int parent(int node, int sequence) const { return parents_[place(node, sequence)]; }
  int entry(int node, int sequence) const { return cut_entries_[place(node, sequence)]; }

 private:
  size_t place(int node, int sequence) const { return static_cast<size_t>(node * sequences_ + sequence); }
  template <typename T>
  simt::Rows<T> room(std::vector<T>& numbers, int64_t count) {
    numbers.resize(static_cast<size_t>(count));
    return {numbers.data(), count};
  }
  DevicePassRows::Shape block_shape(const Problem& problem) const {
    return {.rows = int64_t{problem.block_size} * sequences_,
            .sequences = sequences_,
            .max_length = 100 + growth_.expanded_nodes(),
            .page_size = 4};
  }
  void set_pages() {
    std::vector<int32_t> numbers(static_cast<size_t>((100 + growth_.expanded_nodes()) / 4));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i);
    for (DevicePassRows* rows : {&rows_, &block_, &causal_block_})
      rows->set_pages(std::vector<DevicePassRows::Pages>(problem_.sequences.size(), {numbers}));
    std::vector<ChoiceRow> choices;
    for (const Drafted& drafted : problem_.sequences)
      samplings_.push_back(growth_.sampling_of(drafted.request(0)));
    for (size_t i = 0; i < samplings_.size(); ++i)
      choices.push_back({&samplings_[i], i, growth_.drafts_top()});
    chooser_.set_rows(choices);
  }
  void make_args() {
    const int64_t kept = int64_t{nodes_ + 1} * sequences_,
                  grown = int64_t{growth_.grown_nodes() + 1} * sequences_;
    const int64_t frontier = int64_t{growth_.width()} * sequences_;
    const int64_t lists = frontier * ((problem_.vocab + simt::kPartTokens - 1) / simt::kPartTokens);
    args_.of = {.pending = room(pending_, sequences_),
                .positions = room(positions_, sequences_),
                .remaining = room(remaining_, sequences_),
                .limits = room(limits_, simt::kTreeLimits * sequences_),
                .accepted = room(accepted_, sequences_),
                .drafted = room(drafted_, sequences_),
                .tokens = room(tokens_, kept),
                .parents = room(parents_, kept),
                .path = room(path_, int64_t{levels_ + 1} * sequences_),
                .sequences = sequences_,
                .levels = levels_,
                .nodes = nodes_};
    const bool drops = growth_.drops();
    const simt::Rows<int> cut_entries = room(cut_entries_, kept);
    args_.grown = {.tokens = drops ? room(grown_tokens_, grown) : args_.of.tokens,
                   .parents = drops ? room(grown_parents_, grown) : args_.of.parents,
                   .shapes = room(shapes_, grown),
                   .entries = drops ? room(entries_, grown) : cut_entries,
                   .sources = room(sources_, grown),
                   .scores = room(scores_, grown),
                   .words = room(words_, simt::kGrowthWords * sequences_),
                   .frontier = room(frontier_, frontier)};
    args_.entries = cut_entries;
    args_.rows = rows_.view();
    args_.features = rows_.view();
    args_.sources = room(next_sources_, frontier);
    args_.first = {
        .choice = {},
        .slots = {args_.rows.slots.data, args_.rows.slots.count},
        .keys = room(keys_, lists * simt::kWarp),
        .tokens = room(first_tokens_, lists * simt::kWarp),
        .sums = drops || growth_.has_branches() ? room(sums_, lists) : simt::Rows<double>{nullptr, 0},
        .ranking = growth_.ranking_temperature(),
        .count = growth_.first_tokens()};
    args_.shapes = {growth_.table().data(), std::ssize(growth_.table())};
    args_.going = room(going_, 1);
    args_.blocks = 2;
    args_.width = growth_.width();
    args_.reads_features = 0;
    args_.drops = drops ? 1 : 0;
    args_.rivals = growth_.rivals();
    args_.is_shared = problem_.is_shared ? 1 : 0;
    args_.block = block_.view();
    args_.causal_block = causal_block_.view();
    args_.block_size = problem_.block_size;
    args_.mask = kMask;
    for (int i = 0; i < sequences_; ++i) {
      const Drafted& drafted = problem_.sequences[static_cast<size_t>(i)];
      pending_[static_cast<size_t>(i)] = 1;
      positions_[static_cast<size_t>(i)] = kPosition;
      remaining_[static_cast<size_t>(i)] = i % 2 == 0 ? 50 : drafted.levels + 1;
      const int limits[] = {i % 2 == 0 ? drafted.levels : 50, drafted.nodes, drafted.children};
      for (int limit = 0; limit < simt::kTreeLimits; ++limit) limits_[place(limit, i)] = limits[limit];
    }
  }
  void launch(KernelName kernel, const LaunchShape& shape) { launcher_.launch(kernel, args_, shape); }
  void set_logits(int64_t row) {
    const int sequence = static_cast<int>(row) % sequences_, index = static_cast<int>(row) / sequences_;
    float* const out = logits_.data() + row * problem_.vocab;
    std::fill_n(out, problem_.vocab, std::nanf(""));
    if (index >= words_[place(simt::kFrontierNodes, sequence)]) return;
    Path path;
    for (int node = frontier_[place(index, sequence)]; node > 0;
         node = args_.grown.parents.data[place(node, sequence)])
      path.insert(path.begin(), args_.grown.tokens.data[place(node, sequence)]);
    const auto logits = problem_.logits(static_cast<size_t>(sequence), path);
    std::copy(logits.begin(), logits.end(), out);
  }

  const Problem& problem_;
  Launcher launcher_;
  DeviceGrowth growth_;
  int sequences_, levels_, nodes_;
  DevicePassRows rows_, block_, causal_block_;
  DeviceChooser chooser_;
  std::vector<SamplingParams> samplings_;
  simt::DraftTreesArgs args_ = {};
  std::vector<int> pending_, positions_, remaining_, limits_, accepted_, drafted_, tokens_, parents_, path_,
      cut_entries_, grown_tokens_, grown_parents_, shapes_, entries_, sources_, words_, frontier_,
      next_sources_, first_tokens_, going_;
  std::vector<double> scores_, keys_, sums_;
  std::vector<float> logits_;
};

TEST(DeviceGrowth, HasTheTreesOfTreeGrowth) {
  EmulatedDevice device({.seed = 5});
  RandomDraws random{std::mt19937_64(11)};
  int trees = 0, nodes = 0, expanded = 0;
  while (trees < kTrees) {
    const Problem problem = random_problem(random);
    Growth growth(device, problem);
    growth.run();
    growth.expect_block();
    for (int i = 0; i < std::ssize(problem.sequences); ++i, ++trees) {
      const TokenTree expected = tree_here(problem, static_cast<size_t>(i));
      ASSERT_EQ(growth.drafted(i), expected.drafted()) << trees;
      for (int node = 1; node < expected.size(); ++node, ++nodes) {
        ASSERT_EQ(growth.token(node, i), expected.token(node)) << trees << ", node " << node;
        ASSERT_EQ(growth.parent(node, i), expected.parent(node)) << trees << ", node " << node;
        expanded += growth.entry(node, i) >= 0 ? 1 : 0;
        ASSERT_TRUE(expected.parent(node) == 0 || growth.entry(expected.parent(node), i) > 0);
      }
    }
  }
  EXPECT_GT(nodes, 4 * kTrees);
  EXPECT_GT(expanded, kTrees);
}

}  // namespace
}  // namespace outrider
