// SPDX-License-Identifier: Apache-2.0
// Steps that follow one another on a device have the tokens and the entries of one step after the other on
// this machine.
#include "models/backend/device/device_loop.h"

#include <gtest/gtest.h>

#include <functional>

#include "device/compared_device.h"
#include "device/emulated_device.h"
#include "models/backend/device/fake_gpu.h"
#include "models/backend/device/make_backends.h"
#include "models/decoder.h"
#include "models/model_test_data.h"
#include "sampling/logits_processor.h"

namespace outrider {
namespace {

constexpr int kMaxSteps = 8;
constexpr int64_t kMaxRows = 5, kMaxLength = 40;

// The table with the arithmetic of devices; null: this machine has none.
const KernelTable* device_table() {
  const auto table = select_device_kernels();
  return table.ok() ? *table : nullptr;
}
#define OUTRIDER_REQUIRE_DEVICE_TABLE() \
  if (device_table() == nullptr) GTEST_SKIP() << "this machine has no table with the arithmetic of devices"

// Sequences of a model on a device, or on this machine where there is none.
class Texts {
 public:
  Texts(const std::string& name, Device* device, DType kv_type = DType::kF32) : pool_(1) {
    auto file = open_model(model_data(name));
    EXPECT_TRUE(file.ok());
    const ModelOptions options{.kernels = device_table(), .pool = &pool_, .weights = {}};
    const auto load = [&] { return load_decoder_weights(*file, options); };
    auto backend = device == nullptr ? make_host_backend(file->config, options, load)
                                     : make_device_backend(*device, file->config, options, load);
    EXPECT_TRUE(backend.ok());
    model_ = std::make_unique<Decoder>(file->config, options, std::move(*backend));
    KvShape shape = model_->kv_shape();
    shape.type = kv_type;
    shape.page_size = 4;
    shape.page_count = 80;
    cache_ = std::make_unique<KvCache>(shape, KvOptions{.poison = true}, model_->make_storage(shape));
  }

  Model& model() { return *model_; }
  KvCache& cache() { return *cache_; }
  std::vector<TokenId>& text(size_t i) { return texts_[i]; }
  const SamplingParams& sampling(size_t i) const { return samplings_[i]; }
  KvSequence& kv(size_t i) { return kv_[i]; }
  size_t count() const { return texts_.size(); }

  // A sequence with a random prompt, of which the last token is pending.
  void add(int length, uint32_t seed) {
    const std::vector<TokenId> prompt = random_tokens(length, model_->config().vocab_size, seed);
    texts_.push_back(prompt);
    SamplingParams sampling;
    sampling.seed = seed;
    sampling.temperature = seed % 3 == 0 ? 0.0 : 0.8;
    sampling.top_k = seed % 3 == 1 ? 20 : 0;
    samplings_.push_back(sampling);
    kv_.push_back(cache_->open(prompt));
    const std::span<const TokenId> chunk(prompt.data(), prompt.size() - 1);
    if (!chunk.empty()) run_chunk(*model_, *cache_, kv_.back(), chunk);
  }
  // One step of every sequence, on this machine.
  void step() {
    for (size_t i = 0; i < count(); ++i) {
      const TokenId pending = texts_[i].back();
      const auto logits = run_chunk(*model_, *cache_, kv_[i], std::span(&pending, 1));
      CounterRandomness randomness(samplings_[i].seed, 0);
      CoupledChooser chooser;
      texts_[i].push_back(
          chooser.choose(logits[0], samplings_[i], TokenHistory(), {&randomness, std::ssize(texts_[i])}));
    }
  }
  // The logits after the pending token, which all entries decide.
  std::vector<float> logits_after(size_t i) {
    const TokenId pending = texts_[i].back();
    return run_chunk(*model_, *cache_, kv_[i], std::span(&pending, 1))[0];
  }

  // A run of the loop. take: is asked after each step whether the run goes on.
  int run(
      DeviceLoop& loop, int steps, const std::vector<TokenId>& stops = {},
      const std::function<bool(int)>& take = [](int) { return true; }) {
    std::vector<KvTransaction> transactions;
    std::vector<DeviceLoop::Row> rows;
    for (size_t i = 0; i < count(); ++i) {
      transactions.push_back(cache_->stage(kv_[i], steps).value());
      rows.push_back({.kv = &kv_[i],
                      .token = texts_[i].back(),
                      .choice = {&samplings_[i], 0},
                      .stops = stops,
                      .remaining = steps});
    }
    loop.start(rows, steps);
    int done = 0;
    while (done < steps) {
      const std::span<const DeviceLoop::Outcome> outcomes = loop.outcomes_of(done);
      if (outcomes.empty()) break;
      for (size_t i = 0; i < count(); ++i) texts_[i].push_back(outcomes[i].token);
      if (!take(done++)) break;
    }
    loop.stop();
    std::vector<int> path;
    for (int i = 0; i < done; ++i) path.push_back(i);
    for (size_t i = 0; i < count(); ++i) {
      const std::span<const TokenId> text = texts_[i];
      transactions[i].commit(path, text.subspan(static_cast<size_t>(kv_[i].length()), path.size()));
    }
    return done;
  }
  std::unique_ptr<DeviceLoop> loop() {
    auto made = DeviceLoop::make(*model_, *cache_,
                                 {.max_rows = kMaxRows,
                                  .max_steps = kMaxSteps,
                                  .max_length = kMaxLength,
                                  .vocab_size = model_->config().vocab_size});
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? std::move(*made) : nullptr;
  }

 private:
  ThreadPool pool_;
  std::unique_ptr<Decoder> model_;
  std::unique_ptr<KvCache> cache_;
  std::vector<std::vector<TokenId>> texts_;
  std::vector<SamplingParams> samplings_;
  std::vector<KvSequence> kv_;
};

void add_texts(Texts& texts, int count) {
  for (int i = 0; i < count; ++i) texts.add(1 + i * 5 % 13, static_cast<uint32_t>(i + 1));
}

void expect_same(Texts& here, Texts& there) {
  for (size_t i = 0; i < here.count(); ++i) {
    EXPECT_EQ(here.text(i), there.text(i)) << i;
    EXPECT_EQ(here.logits_after(i), there.logits_after(i)) << i;
  }
}

std::vector<std::string> models_with_loops() {
  std::vector<std::string> names;
  for (const std::string& name : all_models()) {
    const auto file = open_model(model_data(name));
    EXPECT_TRUE(file.ok());
    if (part_without_loop(file->config).empty()) names.push_back(name);
  }
  return names;
}

// Three sequences take a list of four rows, of which nobody uses the last one.
TEST(DeviceLoop, EveryFamilyHasTheTextOfThisMachine) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  const std::vector<std::string> names = models_with_loops();
  EXPECT_GT(names.size(), 35U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    EmulatedDevice device({.seed = 3, .checks_races = true});
    Texts here(name, nullptr), there(name, &device);
    add_texts(here, 3);
    add_texts(there, 3);
    {
      const auto loop = there.loop();
      EXPECT_EQ(there.run(*loop, 5), 5);
      EXPECT_EQ(there.run(*loop, 3), 3);
    }
    for (int i = 0; i < 8; ++i) here.step();
    expect_same(here, there);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(DeviceLoop, EveryTypeOfEntriesAndNumberOfRows) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  const DType types[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kE4M3, DType::kQ8_0};
  for (int rows = 1; rows <= kMaxRows; ++rows) {
    const DType type = types[rows % 4];
    EmulatedDevice device({});
    Texts here("llama_tied", nullptr, type), there("llama_tied", &device, type);
    add_texts(here, rows);
    add_texts(there, rows);
    const auto loop = there.loop();
    EXPECT_EQ(there.run(*loop, kMaxSteps), kMaxSteps);
    for (int i = 0; i < kMaxSteps; ++i) here.step();
    expect_same(here, there);
  }
}

TEST(DeviceLoop, AGpuGetsGraphs) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  const std::unique_ptr<CudaDevice> gpu = fake_gpu();
  {
    Texts here("gemma2", nullptr), there("gemma2", gpu.get());
    add_texts(here, 2);
    add_texts(there, 2);
    const auto loop = there.loop();
    EXPECT_EQ(there.run(*loop, 6), 6);
    for (int i = 0; i < 6; ++i) here.step();
    expect_same(here, there);
    EXPECT_GT(fake_cuda().graphs, 0);
  }
  EXPECT_EQ(fake_cuda().graphs, 0);
  EXPECT_EQ(fake_cuda().allocated, 0U);
}

// As tools/device_check.sh compares a GPU.
TEST(DeviceLoop, EveryLaunchIsCompared) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  EmulatedDevice emulated({});
  ComparedDevice device(emulated);
  Texts here("llama", nullptr), there("llama", &device);
  add_texts(here, 3);
  add_texts(there, 3);
  {
    const auto loop = there.loop();
    EXPECT_EQ(there.run(*loop, 3), 3);
  }
  for (int i = 0; i < 3; ++i) here.step();
  expect_same(here, there);
  for (const char* kernel : {"RotateAndStoreF32", "FindLargest", "RaceTokens", "NextStep"}) {
    EXPECT_GT(device.comparisons().at(kernel).launches, 0) << kernel;
    EXPECT_EQ(device.comparisons().at(kernel).differing, 0) << kernel;
  }
}

// Scratch that a larger pass needs moves, so that the list is recorded again.
TEST(DeviceLoop, LargerPassesBetweenRuns) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  EmulatedDevice device({});
  Texts here("llama", nullptr), there("llama", &device);
  add_texts(here, 2);
  add_texts(there, 2);
  const auto loop = there.loop();
  there.run(*loop, 4);
  for (int i = 0; i < 4; ++i) here.step();
  here.add(33, 9);
  there.add(33, 9);
  there.run(*loop, 2);
  for (int i = 0; i < 2; ++i) here.step();
  expect_same(here, there);
}

TEST(DeviceLoop, AStopTokenEndsTheRun) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  EmulatedDevice device({});
  Texts here("llama", nullptr), there("llama", &device);
  add_texts(here, 2);
  add_texts(there, 2);
  const size_t begin = here.text(1).size();
  for (int i = 0; i < kMaxSteps; ++i) here.step();
  const TokenId stop = here.text(1)[begin + 3];
  int steps = 0;  // until one of the sequences has the token
  for (bool is_there = false; !is_there; ++steps)
    is_there = here.text(1)[begin + static_cast<size_t>(steps)] == stop ||
               here.text(0)[here.text(0).size() - kMaxSteps + static_cast<size_t>(steps)] == stop;
  const auto loop = there.loop();
  EXPECT_EQ(there.run(*loop, kMaxSteps, {stop}), steps);
}

// The host takes some of the steps. Steps that the loop has computed beyond them change nothing.
TEST(DeviceLoop, ARunThatIsStoppedIsRewound) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  EmulatedDevice device({});
  Texts here("llama", nullptr), there("llama", &device);
  add_texts(here, 3);
  add_texts(there, 3);
  const auto loop = there.loop();
  int all = 0;
  for (const int taken : {1, 3, 2}) {
    EXPECT_EQ(there.run(*loop, kMaxSteps, {}, [&](int step) { return step + 1 < taken; }), taken);
    all += taken;
  }
  for (int i = 0; i < all; ++i) here.step();
  expect_same(here, there);
}

TEST(DeviceLoop, OtherTargetsAreRefusedByName) {
  OUTRIDER_REQUIRE_DEVICE_TABLE();
  Texts here("llama", nullptr);
  const DeviceLoop::Shape shape{.max_rows = 1, .max_steps = 1, .max_length = 8, .vocab_size = 8};
  EXPECT_EQ(DeviceLoop::make(here.model(), here.cache(), shape).error().message,
            "the target is not all on a device");
  EmulatedDevice device({});
  Texts there("qwen3_5", &device);
  EXPECT_EQ(DeviceLoop::make(there.model(), there.cache(), shape).error().message,
            "the target has delta_net layers");
}

TEST(DeviceLoop, PartsWithoutLoopsAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"llama", ""}, {"gpt2", ""}, {"gemma4", ""}, {"qwen3_5", "delta_net"}, {"lfm2", "short_convolution"}};
  for (const auto& [name, part] : cases) {
    const auto file = open_model(model_data(name));
    ASSERT_TRUE(file.ok());
    const std::string found = part_without_loop(file->config);
    EXPECT_EQ(found.empty(), *part == '\0') << name << ": " << found;
    EXPECT_NE(found.find(part), std::string::npos) << name << ": " << found;
  }
}

}  // namespace
}  // namespace outrider
