// SPDX-License-Identifier: Apache-2.0
// Passes that a device repeats as lists have the bits of this machine, and the host orders little for them.
#include "models/backend/device/pass_lists.h"

#include <gtest/gtest.h>

#include <numeric>

#include "device/emulated_device.h"
#include "models/backend/device/make_backends.h"
#include "models/backend/host/host_backend.h"
#include "models/decoder.h"
#include "models/model_test_data.h"

namespace outrider {
namespace {

const KernelTable* table_for_lists() {
  const auto table = select_device_kernels();
  return table.ok() ? *table : nullptr;
}

// A small model on a device, or on this machine where there is none, with some sequences.
class Runner {
 public:
  Runner(const std::string& name, Device* device, int64_t pages = 128) : pool_(1) {
    auto file = open_model(model_data(name));
    EXPECT_TRUE(file.ok()) << file.error().message;
    const ModelOptions options{.kernels = table_for_lists(), .pool = &pool_, .weights = DType::kQ8_0};
    const auto load = [&] { return load_decoder_weights(*file, options); };
    auto backend = device == nullptr ? make_host_backend(file->config, options, load)
                                     : make_device_backend(*device, file->config, options, load);
    EXPECT_TRUE(backend.ok()) << backend.error().message;
    model_ = std::make_unique<Decoder>(file->config, options, std::move(*backend));
    KvShape shape = small_cache_shape(*model_);
    shape.page_count = pages;
    cache_ = std::make_unique<KvCache>(shape, KvOptions{.poison = true}, model_->make_storage(shape));
    for (int i = 0; i < 4; ++i) sequences_.push_back(cache_->open({}));
  }

  Decoder& model() { return *model_; }
  // Orders to the device in the last pass, with its results.
  const DeviceCounts& counts() const { return counts_; }

  // Tokens that a sequence gets in a pass: a chain, which stays, or the nodes of a tree.
  struct Part {
    int sequence = 0;
    int count = 1;
    LogitsWanted wanted = LogitsWanted::kAll;
    std::vector<int> parents = {};  // of a tree
    int64_t first_layers = 0;       // that a pass runs before the whole one; 0: there is no such pass
  };
  // The logits and the features of a pass. The path to the last node of a tree stays.
  std::vector<float> run(const std::vector<Part>& parts, uint32_t seed) {
    ForwardBatch batch;
    std::vector<KvTransaction> transactions;
    std::vector<std::vector<TokenId>> tokens;
    for (const Part& part : parts) {
      KvSequence& sequence = sequences_[static_cast<size_t>(part.sequence)];
      transactions.push_back(cache_->stage(sequence, part.count).value());
      tokens.push_back(random_tokens(part.count, model_->config().vocab_size, seed++));
      if (part.parents.empty()) {
        append_chain(batch, sequence, transactions.back(), tokens.back(), part.wanted);
      } else {
        append_tree(batch, sequence, transactions.back(), {tokens.back(), part.parents}, part.wanted);
      }
    }
    if (const int64_t layers = parts.front().first_layers; layers > 0)
      model_->forward_subset(batch, *cache_, {.count = layers, .skip_attention = {}, .skip_mlp = {}});
    const auto before = model_->device_counts();
    const auto logits = model_->forward(batch, *cache_);
    if (before) counts_ = *model_->device_counts() - *before;
    std::vector<float> numbers(logits.begin(), logits.end());
    const auto features = model_->features();
    numbers.insert(numbers.end(), features.begin(), features.end());
    for (size_t i = 0; i < parts.size(); ++i) commit(parts[i], tokens[i], transactions[i]);
    return numbers;
  }

 private:
  static void commit(const Part& part, const std::vector<TokenId>& tokens, KvTransaction& transaction) {
    std::vector<int> path(static_cast<size_t>(part.count));
    std::iota(path.begin(), path.end(), 0);
    if (!part.parents.empty()) {
      path.clear();
      for (int node = part.count - 1; node >= 0; node = part.parents[static_cast<size_t>(node)])
        path.insert(path.begin(), node);
    }
    std::vector<TokenId> kept;
    for (const int node : path) kept.push_back(tokens[static_cast<size_t>(node)]);
    transaction.commit(path, kept);
  }

  ThreadPool pool_;
  std::unique_ptr<Decoder> model_;
  std::unique_ptr<KvCache> cache_;
  std::vector<KvSequence> sequences_;
  DeviceCounts counts_;
};

std::vector<Runner::Part> random_parts(std::mt19937& random, int turn) {
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  std::vector<Runner::Part> parts;
  for (int sequence = below(4); sequence < 4; sequence += 1 + below(3)) {
    Runner::Part part{.sequence = sequence, .count = 1 + below(turn % 5 == 4 ? 20 : 4)};
    if (below(3) == 0) {
      for (int node = 0; node < part.count; ++node) part.parents.push_back(below(node + 1) - 1);
    } else {
      part.wanted = static_cast<LogitsWanted>(below(3));
    }
    parts.push_back(part);
  }
  return parts;
}

// Chains and trees of several sequences in buckets of several sizes, which make scratch grow in between.
void expect_bits_of_lists(const std::string& name, FeatureTaps taps) {
  SCOPED_TRACE(name);
  EmulatedDevice device({.seed = 3, .checks_races = true});
  Runner there(name, &device), here(name, nullptr);
  EXPECT_EQ(there.model().backend().repeat_problem(), "");
  there.model().tap(taps);
  here.model().tap(taps);
  std::mt19937 random(5);
  for (int turn = 0; turn < 12; ++turn) {
    const auto parts = random_parts(random, turn);
    const auto seed = static_cast<uint32_t>(100 * turn);
    const std::vector<float> found = there.run(parts, seed);
    EXPECT_EQ(there.counts().launches, 0) << "turn " << turn;
    EXPECT_EQ(there.counts().lists, 1) << "turn " << turn;
    ASSERT_EQ(found, here.run(parts, seed)) << "turn " << turn;
  }
}

// Attention with windows, two RoPEs and caps; ALiBi; gates of attention; temperatures of queries; experts;
// latent attention; layers side by side; delta nets and short convolutions.
TEST(PassLists, HaveTheBitsOfThisMachine) {
  if (table_for_lists() == nullptr)
    GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const char* name : {"llama", "gemma3", "mpt", "falcon_alibi", "ministral3", "gpt_oss", "qwen2_moe",
                           "deepseek_v3", "llama4", "qwen3_5", "qwen3_next", "lfm2"})
    expect_bits_of_lists(name, {});
  expect_bits_of_lists("llama", {.layers = {0, 1}, .final_norm = false});
  expect_bits_of_lists("llama", {.layers = {1}, .final_norm = true});
}

// All lists read the same words, so that more lists need no more memory of the device.
TEST(PassLists, ShareTheWordsThatTheyRead) {
  if (table_for_lists() == nullptr)
    GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  EmulatedDevice device({});
  Runner runner("llama", &device);
  runner.run({{.sequence = 0, .count = 40}}, 1);  // scratch for the most rows
  const int64_t before = device.allocated_bytes();
  for (const int count : {1, 2, 3, 5, 9}) runner.run({{.sequence = 1, .count = count}}, 2);
  EXPECT_EQ(device.allocated_bytes(), before);
}

// After the first pass of its bucket a pass is one copy of small lists and one list, and what is read of it.
TEST(PassLists, LaterPassesOfABucketAreOneCopyAndOneList) {
  if (table_for_lists() == nullptr)
    GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  EmulatedDevice device({});
  Runner runner("llama", &device);
  const auto mixed = [](int chunk) {
    return std::vector<Runner::Part>{{.sequence = 0, .count = chunk, .wanted = LogitsWanted::kNone},
                                     {.sequence = 1, .count = 2}};
  };
  const auto tree = [](std::vector<int> parents) {
    const auto count = static_cast<int>(parents.size());
    return std::vector<Runner::Part>{{.sequence = 2, .count = count, .parents = std::move(parents)}};
  };
  runner.run({{.sequence = 3, .count = 64}}, 1);
  for (const auto& parts : {tree({-1}), tree({-1, 0}), tree({-1, 0, 0}), tree({-1, 0, 0, 1, 1}), mixed(6)})
    runner.run(parts, 2);
  int64_t rows = 0;
  for (const auto& parts : {tree({-1}), tree({-1, 0}), tree({-1, 0, 0, 0}), tree({-1, 0, 0, 1, 1, 3, 3}),
                            mixed(4), mixed(5), tree({-1})}) {
    rows = std::accumulate(parts.begin(), parts.end(), int64_t{0}, [](int64_t sum, const Runner::Part& part) {
      return sum + (part.wanted == LogitsWanted::kAll ? part.count : 0);
    });
    runner.run(parts, 3);
    const DeviceCounts& counts = runner.counts();
    EXPECT_EQ(counts.launches, 0);
    EXPECT_EQ(counts.lists, 1);
    EXPECT_EQ(counts.allocations, 0);
    EXPECT_LT(counts.uploaded_bytes, 8 << 10);
    EXPECT_EQ(counts.downloaded_bytes, rows * runner.model().config().vocab_size * 4);
  }
}

// A row gets more entries than the list of its bucket has scratch for, so that the bucket is recorded again.
TEST(PassLists, TextsMayOutgrowTheirList) {
  if (table_for_lists() == nullptr)
    GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  EmulatedDevice device({.seed = 3, .checks_races = true});
  Runner there("llama", &device, 600), here("llama", nullptr, 600);
  const auto expect_equal = [&](const Runner::Part& part) {
    EXPECT_EQ(there.run({part}, 7), here.run({part}, 7));
  };
  const Runner::Part tree{.count = 4, .parents = {-1, 0, 0, 2}};
  expect_equal(tree);
  for (const int prompt : {1021, 0, 1024}) {
    if (prompt > 0) expect_equal({.count = prompt, .wanted = LogitsWanted::kNone});
    expect_equal(tree);
    EXPECT_EQ(there.counts().launches, 0);
    EXPECT_EQ(there.counts().lists, 1);
  }
  expect_equal(tree);
  EXPECT_EQ(there.counts().allocations, 0);
}

// After a pass of only the first layers, states hold other entries in the later ones, and no list is right
// for all of them.
TEST(PassLists, StatesThatDifferByLayerGetNoList) {
  if (table_for_lists() == nullptr)
    GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  EmulatedDevice device({.seed = 3, .checks_races = true});
  Runner there("qwen3_5", &device), here("qwen3_5", nullptr);
  const auto expect_equal = [&](const Runner::Part& part, int64_t lists) {
    EXPECT_EQ(there.run({part}, 7), here.run({part}, 7));
    EXPECT_EQ(there.counts().lists, lists);
  };
  expect_equal({.count = 5}, 1);
  expect_equal({.count = 3, .parents = {-1, 0, 0}, .first_layers = 2}, 0);
  expect_equal({.count = 4, .parents = {-1, 0, 0, 1}}, 1);
  expect_equal({.count = 2}, 1);
}

}  // namespace
}  // namespace outrider
