// SPDX-License-Identifier: Apache-2.0
// A draft model that drafts within the steps of a device makes the trees that it makes between steps, on the
// emulation, in a GPU's graphs, and where every launch is compared.
#include <gtest/gtest.h>

#include "device/compared_device.h"
#include "device/emulated_device.h"
#include "drafters/draft_target/draft_target.h"
#include "models/backend/device/device_loop.h"
#include "models/backend/device/fake_gpu.h"
#include "models/backend/device/make_backends.h"
#include "models/decoder.h"
#include "models/model_test_data.h"
#include "sampling/logits_processor.h"
#include "speculation/tree/tree_policy.h"

namespace outrider {
namespace {

constexpr int kLevels = 3, kMaxSteps = 6;
constexpr int64_t kMaxLength = 120;

SpeculativeOptions drafting_options(const TreeOptions& tree) {
  SpeculativeOptions options;
  options.max_draft_len = kLevels;
  options.draft_temperature = 1.2;  // a model that drafts for itself is not always right
  options.tree = tree;
  return options;
}
const TreeOptions kChain = {};
TreeOptions static_tree() {
  TreeOptions tree;
  tree.kind = TreeKind::kStatic;
  tree.expansion = {3, 1, 2};
  return tree;
}
TreeOptions dynamic_tree() {
  TreeOptions tree;
  tree.kind = TreeKind::kDynamic;
  tree.dynamic_tree_max_top_k = 3;
  tree.max_total_draft_tokens = 9;
  return tree;
}
const TreeOptions kStatic = static_tree(), kDynamic = dynamic_tree();

#define OUTRIDER_REQUIRE_DEVICE_TABLE() \
  if (!select_device_kernels().ok())    \
  GTEST_SKIP() << "this machine has no table with the arithmetic of devices"

// A target and a draft model on a device, or on this machine where there is none.
class Pair {
 public:
  Pair(const std::string& draft, const TreeOptions& tree, Device* device) : pool_(1) {
    target_ = load("llama", device);
    KvShape shape = target_->kv_shape();
    shape.page_size = 4;
    shape.page_count = 150;
    cache_ = std::make_unique<KvCache>(shape, KvOptions{.poison = true}, target_->make_storage(shape));
    DrafterContext context;
    context.vocab_size = vocab();
    context.context = kMaxLength;
    context.max_batch = 4;
    context.page_size = 4;
    context.kv_type = DType::kF32;
    auto drafter = make_draft_target_drafter(load(draft, device), drafting_options(tree), context);
    EXPECT_TRUE(drafter.ok());
    drafter_ = *drafter;
  }

  Model& target() { return *target_; }
  KvCache& cache() { return *cache_; }
  Drafter& drafter() { return *drafter_; }
  int64_t vocab() const { return target_->config().vocab_size; }

 private:
  std::unique_ptr<Model> load(const std::string& name, Device* device) {
    auto file = open_model(model_data(name));
    const ModelOptions options{.kernels = *select_device_kernels(), .pool = &pool_, .weights = {}};
    const auto weights = [&] { return load_decoder_weights(*file, options); };
    auto backend = device == nullptr ? make_host_backend(file->config, options, weights)
                                     : make_device_backend(*device, file->config, options, weights);
    EXPECT_TRUE(backend.ok());
    return std::make_unique<Decoder>(file->config, options, std::move(*backend));
  }

  ThreadPool pool_;
  std::unique_ptr<Model> target_;
  std::unique_ptr<KvCache> cache_;
  std::shared_ptr<Drafter> drafter_;
};

struct Text {
  std::vector<TokenId> tokens;
  SamplingParams sampling = {};
  KvSequence kv = {};
};

Text text_in(Pair& pair, uint32_t seed) {
  Text text{.tokens = random_tokens(static_cast<int>(1 + seed * 5 % 17), pair.vocab(), seed)};
  text.sampling.seed = seed;
  text.sampling.temperature = seed % 3 == 0 ? 0.0 : 0.9;
  text.sampling.top_k = seed % 3 == 1 ? 20 : 0;
  text.kv = pair.cache().open(text.tokens);
  const std::span<const TokenId> chunk = std::span(text.tokens).first(text.tokens.size() - 1);
  if (!chunk.empty()) run_chunk(pair.target(), pair.cache(), text.kv, chunk);
  return text;
}

DraftRequest request_of(const Text& text, size_t index, int levels, int nodes) {
  return {.sequence = index,
          .tokens = text.tokens,
          .prompt_length = 1,
          .max_draft_len = levels,
          .max_nodes = nodes,
          .sampling = &text.sampling};
}

// The token that the target chooses after the text.
TokenId next_token(Pair& pair, Text& text) {
  const auto logits = run_chunk(pair.target(), pair.cache(), text.kv, std::span(text.tokens).last(1));
  CounterRandomness randomness(text.sampling.seed, 0);
  CoupledChooser chooser;
  return chooser.choose(logits[0], text.sampling, TokenHistory(), {&randomness, std::ssize(text.tokens)});
}

// Texts on a device, and the same texts on this machine.
class Runs {
 public:
  Runs(const std::string& draft, const TreeOptions& tree, Device& device, int count)
      : nodes_(max_tree_nodes(drafting_options(tree))),
        here_(draft, tree, nullptr),
        there_(draft, tree, &device) {
    for (int i = 0; i < count; ++i) {
      expected_.push_back(text_in(here_, static_cast<uint32_t>(i + 1)));
      texts_.push_back(text_in(there_, static_cast<uint32_t>(i + 1)));
    }
    auto loop = DeviceLoop::make(there_.target(), there_.cache(),
                                 {.max_rows = 4 * (nodes_ + 1),
                                  .max_levels = kLevels,
                                  .max_nodes = nodes_,
                                  .max_steps = kMaxSteps,
                                  .max_length = kMaxLength,
                                  .vocab_size = there_.vocab()},
                                 there_.drafter().device_draft());
    EXPECT_TRUE(loop.ok()) << loop.error().message;
    loop_ = std::move(*loop);
  }

  // A run of which `taken` steps count, with `levels` of the text with that index.
  void run(int steps, int taken, const std::vector<int>& levels) {
    const int most = steps * (kLevels + 1), entries = most + nodes_ - kLevels;
    std::vector<KvTransaction> staged;
    std::vector<DeviceLoop::Row> rows;
    std::vector<DeviceDraft::Row> drafts;
    for (size_t i = 0; i < texts_.size(); ++i) {
      Text& text = texts_[i];
      staged.push_back(there_.cache().stage(text.kv, entries).value());
      drafts.push_back({request_of(text, i, levels[i], nodes_), most, most - kLevels - 1});
      rows.push_back({.kv = &text.kv,
                      .token = text.tokens.back(),
                      .choice = {&text.sampling, 0},
                      .stops = {},
                      .remaining = most,
                      .max_draft_len = levels[i],
                      .max_nodes = nodes_});
    }
    ASSERT_TRUE(loop_->draft()->start(drafts));
    loop_->start(rows, steps);
    for (int step = 0; step < taken; ++step) take(loop_->outcomes_of(step), levels);
    loop_->stop();
    for (size_t i = 0; i < texts_.size(); ++i) {
      const auto tokens = std::span<const TokenId>(texts_[i].tokens);
      std::vector<int> path(tokens.size() - 1 - static_cast<size_t>(texts_[i].kv.length()));
      std::iota(path.begin(), path.end(), 0);
      staged[i].commit(path, tokens.subspan(static_cast<size_t>(texts_[i].kv.length()), path.size()));
      loop_->draft()->finish(i, tokens);
    }
  }

  // A draft of the device's drafter between steps.
  void draft_between_steps(size_t i) {
    TokenTree tree(texts_[i].tokens.back());
    const DraftRequest request = request_of(texts_[i], i, kLevels, nodes_);
    EXPECT_TRUE(there_.drafter().draft(std::span(&request, 1), std::span(&tree, 1)).ok());
  }

  int accepted = 0, drafted = 0;

 private:
  void take(std::span<const DeviceLoop::Outcome> outcomes, const std::vector<int>& levels) {
    ASSERT_EQ(outcomes.size(), texts_.size());
    for (size_t i = 0; i < texts_.size(); ++i) {
      const DeviceLoop::Outcome& outcome = outcomes[i];
      const TokenTree tree = tree_here(i, levels[i]);
      ASSERT_EQ(std::ssize(outcome.nodes), tree.drafted());
      for (int node = 1; node < tree.size(); ++node) {
        EXPECT_EQ(outcome.nodes[static_cast<size_t>(node) - 1].token, tree.token(node));
        EXPECT_EQ(outcome.nodes[static_cast<size_t>(node) - 1].parent, tree.parent(node));
      }
      drafted += tree.drafted();
      accepted += static_cast<int>(outcome.accepted.size());
      for (const int node : outcome.accepted) take_token(i, tree.token(node));
      take_token(i, outcome.token);
    }
  }
  void take_token(size_t i, TokenId token) {
    EXPECT_EQ(token, next_token(here_, expected_[i]));
    for (std::vector<Text>* texts : {&expected_, &texts_}) (*texts)[i].tokens.push_back(token);
  }
  TokenTree tree_here(size_t i, int levels) {
    TokenTree tree(expected_[i].tokens.back());
    const DraftRequest request = request_of(expected_[i], i, levels, nodes_);
    if (levels > 0) {
      EXPECT_TRUE(here_.drafter().draft(std::span(&request, 1), std::span(&tree, 1)).ok());
    }
    return tree;
  }

  int nodes_;  // of a tree
  Pair here_, there_;
  std::vector<Text> expected_, texts_;
  std::unique_ptr<DeviceLoop> loop_;
};

void expect_trees_of_this_machine(const TreeOptions& tree) {
  EmulatedDevice device({.seed = 3, .checks_races = true});
  for (const std::string draft : {"llama", "qwen2", "gemma2"}) {
    SCOPED_TRACE(draft);
    Runs runs(draft, tree, device, 3);
    runs.run(5, 5, {kLevels, kLevels, kLevels});
    runs.run(kMaxSteps, 2, {kLevels, 1, 2});  // the others are computed in vain
    runs.run(2, 2, {0, kLevels, 0});
    runs.run(2, 2, {0, 0, 0});
    runs.run(3, 3, {kLevels, kLevels, kLevels});
    EXPECT_LT(runs.accepted, runs.drafted);
    const int shares = tree.kind == TreeKind::kChain ? 2 : 6;
    EXPECT_TRUE(draft != "llama" || runs.accepted > runs.drafted / shares);
  }
}

TEST(DeviceTrees, ChainsAreThoseOfThisMachine) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  expect_trees_of_this_machine(kChain);
}

TEST(DeviceTrees, StaticTreesAreThoseOfThisMachine) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  expect_trees_of_this_machine(kStatic);
}

TEST(DeviceTrees, DynamicTreesAreThoseOfThisMachine) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  expect_trees_of_this_machine(kDynamic);
}

// The first text drafts here, and then nothing in a run that gives it more tokens than the draft has entries.
TEST(DeviceTrees, ADraftBetweenStepsIsNoPartOfARun) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  for (const TreeOptions& tree : {kChain, kDynamic}) {
    EmulatedDevice device({});
    Runs runs("llama", tree, device, 2);
    runs.run(2, 2, {kLevels, kLevels});
    runs.draft_between_steps(0);
    runs.run(kMaxSteps, kMaxSteps, {0, kLevels});
    runs.run(3, 3, {kLevels, kLevels});
  }
}

TEST(DeviceTrees, AGpuGetsGraphsWithLoopsInLoops) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  const std::unique_ptr<CudaDevice> gpu = fake_gpu();
  {
    Runs runs("llama", kDynamic, *gpu, 2);
    runs.run(5, 5, {kLevels, kLevels});
    runs.run(4, 1, {2, kLevels});
    runs.run(2, 2, {kLevels, 0});
    EXPECT_GT(fake_cuda().graphs, 0);
  }
  EXPECT_EQ(fake_cuda().graphs, 0);
  EXPECT_EQ(fake_cuda().allocated, 0U);
}

// The launches of a step are properties of the test (lab/2026-11-30_device_drafts.md).
TEST(DeviceTrees, EveryLaunchIsCompared) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  EmulatedDevice emulated({});
  ComparedDevice device(emulated);
  const auto launches = [&] {
    int64_t sum = 0;
    for (const auto& [kernel, comparison] : device.comparisons()) sum += comparison.launches;
    return sum;
  };
  for (const TreeOptions& tree : {kChain, kStatic, kDynamic}) {
    Runs runs("llama", tree, device, 3);
    runs.run(3, 3, {kLevels, 2, 0});
    const auto launches_of = [&](int steps, int levels) {
      const int64_t before = launches();
      runs.run(steps, steps, {levels, levels, levels});
      return launches() - before;
    };
    launches_of(1, kLevels);  // from here on the entries of one token are missing at the start of a run
    const int64_t plain = launches_of(2, 0), drafting = launches_of(1, kLevels);
    const std::string kind = std::to_string(static_cast<int>(tree.kind));
    RecordProperty("launches_of_a_plain_step", std::to_string(plain / 2));
    RecordProperty("launches_of_a_step_with_trees_of_kind_" + kind,
                   std::to_string(launches_of(2, kLevels) - drafting));
  }
  for (const char* kernel : {"StartTrees", "ListFirst", "GrowTrees", "CutTrees", "PlaceTrees", "WalkTrees",
                             "MoveEntries", "NextStep"}) {
    EXPECT_GT(device.comparisons().at(kernel).launches, 0) << kernel;
    EXPECT_EQ(device.comparisons().at(kernel).differing, 0) << kernel;
  }
}

TEST(DeviceTrees, AreLeftToThisMachineWhereItDecidesMore) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  EmulatedDevice device({});
  Pair pair("llama", kChain, &device);
  const Text text = text_in(pair, 1);
  DeviceDraft* draft = pair.drafter().device_draft();
  ASSERT_NE(draft, nullptr);
  DraftRequest request = request_of(text, 0, 2, 2);
  EXPECT_TRUE(draft->takes(request));
  request.acceptance = AcceptanceRule::kRejection;
  EXPECT_FALSE(draft->takes(request));
  request = request_of(text, 0, 2, 2);
  SamplingParams sampling = text.sampling;
  sampling.top_p = 0.9;
  request.sampling = &sampling;
  EXPECT_FALSE(draft->takes(request));
}

}  // namespace
}  // namespace outrider
