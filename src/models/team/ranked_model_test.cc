// SPDX-License-Identifier: Apache-2.0
// A model that ranks share, here threads, against the same model in one piece: all bits are equal.
#include "models/team/ranked_model.h"

#include <gtest/gtest.h>

#include "models/backend/device/make_backends.h"
#include "models/backend/separate_backend.h"
#include "models/model_test_data.h"
#include "models/team/messages.h"

namespace outrider {
namespace {

struct Division {
  int shards = 1;
  int stages = 1;
};

// A model in one piece or divided, with its cache.
class DividedModel {
 public:
  DividedModel(const std::string& name, Division division, std::string_view kernels = "",
               std::string_view device = "")
      : pool_(1) {
    auto file = open_model(model_data(name));
    EXPECT_TRUE(file.ok()) << file.error().message;
    const auto table = select_kernels(kernels);
    const ModelOptions options{.kernels = *table, .pool = &pool_, .weights = {}, .device = device};
    auto model =
        division.shards * division.stages == 1
            ? Model::load(*file, options)
            : RankedModel::load(
                  *file, options,
                  {.shards = division.shards, .stages = division.stages, .threads = 1, .micro_rows = 2});
    EXPECT_TRUE(model.ok()) << model.error().message;
    model_ = std::move(model).value();
    const KvShape shape = small_cache_shape(*model_);
    cache_ = std::make_unique<KvCache>(shape, KvOptions(), model_->make_storage(shape));
    EXPECT_TRUE(model_->share_cache(*cache_).ok());
  }

  Model& model() { return *model_; }
  KvCache& cache() { return *cache_; }

 private:
  ThreadPool pool_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<KvCache> cache_;
};

// `device`: of each rank of the divided model
void expect_equal_bits(const std::string& name, std::string_view kernels = "", std::string_view device = "") {
  SCOPED_TRACE(name);
  DividedModel whole(name, {}, kernels);
  const std::vector<float> expected = numbers_of_run(whole.model(), whole.cache());
  for (const Division division : {Division{2, 1}, Division{4, 1}, Division{1, 2}, Division{2, 2}}) {
    SCOPED_TRACE(std::to_string(division.shards) + " shards, " + std::to_string(division.stages) + " stages");
    DividedModel divided(name, division, kernels, device);
    EXPECT_EQ(numbers_of_run(divided.model(), divided.cache()), expected);
    if (device.empty()) continue;
    EXPECT_EQ(divided.model().backend().repeat_problem(), "");
    EXPECT_GT(divided.model().device_counts()->lists, 0);
  }
}

TEST(RankedModel, BitsAreThoseOfOneRank) {
  for (const char* name :
       {"llama", "llama_tied", "qwen2", "qwen3", "gemma2", "gemma3", "opt", "gpt2", "falcon", "falcon_alibi",
        "stablelm", "phi3", "starcoder2", "mpt", "granite", "llama.gguf"})
    expect_equal_bits(name);
}

// The small models have fewer features than a panel, so that one shard has them all; the shape has uneven
// shares.
TEST(RankedModel, MixturesOfExpertsKeepTheirBits) {
  for (const char* name : {"mixtral", "mixtral.gguf", "qwen2_moe", "qwen3_moe", "gpt_oss", "granitemoe",
                           "glm4_moe", "llama4", "shape:moe-20m@2,bf16,512", "shape:moe-20m@2,q4_0,512"})
    expect_equal_bits(name);
}

// Each rank has a device, and the whole model is on this machine.
TEST(RankedModel, DevicesKeepTheBits) {
  const auto kernels = select_device_kernels();
  if (!kernels.ok()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const char* name : {"llama", "llama_tied", "gemma3", "opt", "falcon", "phi3", "mixtral", "gpt_oss",
                           "shape:moe-20m@2,q4_0,512"})
    expect_equal_bits(name, (*kernels)->name, "emulated");
}

// A pass as bytes. Weights, entries of the cache and logits are named and not contained: weights belong to
// the model that runs it, entries are slots, and logits are rows of the batch.
std::vector<std::byte> record_pass(const PassOrder& order) {
  MessageWriter writer;
  each_field(writer, order);
  return {writer.bytes().begin(), writer.bytes().end()};
}

// Repeats the moves in the cache that came before the pass, then runs it.
std::vector<float> run_recorded(std::span<const std::byte> pass, Model& model, KvCache& cache) {
  MessageReader reader(pass);
  PassOrder order;
  each_field(reader, order);
  for (const KvMove& move : order.moves) cache.repeat(move);
  const auto logits = model.forward(order.batch, cache);
  return {logits.begin(), logits.end()};
}

// The passes of a prompt, a tree of which one branch stays, and the next token, as they were run and as
// bytes.
struct Recording {
  std::vector<std::vector<std::byte>> passes;
  std::vector<std::vector<float>> logits;
};

Recording record_run(DividedModel& divided) {
  KvCache& cache = divided.cache();
  std::vector<KvMove> moves;
  cache.record_moves(&moves);
  KvSequence sequence = cache.open({});
  Recording recording;
  const auto run = [&](std::span<const TokenId> tokens, std::span<const int> parents,
                       std::span<const int> path) {
    auto transaction = cache.stage(sequence, static_cast<int>(tokens.size()));
    PassOrder order{.moves = std::exchange(moves, {}), .batch = {}};
    append_tree(order.batch, sequence, *transaction, {tokens, parents}, LogitsWanted::kAll);
    recording.passes.push_back(record_pass(order));
    const auto logits = divided.model().forward(order.batch, cache);
    recording.logits.emplace_back(logits.begin(), logits.end());
    std::vector<TokenId> kept;
    for (const int node : path) kept.push_back(tokens[static_cast<size_t>(node)]);
    transaction->commit(path, kept);
  };
  const int64_t vocab = divided.model().config().vocab_size;
  run(random_tokens(6, vocab, 1), std::vector{-1, 0, 1, 2, 3, 4}, std::vector{0, 1, 2, 3, 4, 5});
  run(random_tokens(5, vocab, 2), std::vector{-1, 0, 0, 2, 3}, std::vector{0, 2, 3});
  run(random_tokens(1, vocab, 3), std::vector{-1}, std::vector{0});
  cache.record_moves(nullptr);
  return recording;
}

void expect_same_logits(const Recording& recording, Model& model, KvCache& cache, const char* name) {
  for (size_t i = 0; i < recording.passes.size(); ++i) {
    EXPECT_EQ(run_recorded(recording.passes[i], model, cache), recording.logits[i]) << name << ", pass " << i;
  }
}

TEST(RecordedPass, RunsAgainOnAnotherModelOfTheSameWeights) {
  for (const char* name : {"llama", "gemma3", "mixtral"}) {
    DividedModel first(name, {}), second(name, {});
    expect_same_logits(record_run(first), second.model(), second.cache(), name);
  }
}

// Weights, entries and logits are only named, so that they need not lie in this machine's memory.
TEST(RecordedPass, RunsAgainInMemoryOfItsOwn) {
  for (const char* name : {"llama", "gemma3", "mixtral"}) {
    DividedModel first(name, {});
    SeparateModel second(name);
    expect_same_logits(record_run(first), second.model(), second.cache(), name);
  }
}

TEST(RankedModel, EveryKernelTableKeepsTheBits) {
  for (const std::string_view kernels : available_kernels()) {
    expect_equal_bits("llama", kernels);
    expect_equal_bits("shape:moe-20m@2,q8_0,512", kernels);
  }
}

}  // namespace
}  // namespace outrider
