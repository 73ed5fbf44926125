// SPDX-License-Identifier: Apache-2.0
// Engines with layers that do not all fit into memory. The text equals the text of an engine in memory, with
// every way to draft, and a disk that fails ends the request with an error.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "base/sanitized.h"
#include "config/methods.h"
#include "config/speculative_config.h"
#include "open/files.h"
#include "open/parts.h"
#include "outrider/engine.h"
#include "platform/machine_memory.h"

// AddressSanitizer keeps freed memory, which would count as memory of the next engine. The least limit would
// rise from one try to the next.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=1:thread_local_quarantine_size_kb=64:allocator_release_to_os_interval_ms=0";
}

namespace outrider {
namespace {

namespace fs = std::filesystem;

const std::string kModels = std::string(OUTRIDER_SOURCE_DIR) + "/models/";

class MemoryLimit : public testing::Test {
 protected:
  MemoryLimit() : folder_(testing::TempDir() + "outrider_memory_limit_test") { fs::remove_all(folder_); }
  ~MemoryLimit() override { fs::remove_all(folder_); }

  EngineOptions options_for(const std::string& drafter) const {
    EngineOptions options;
    options.model = kModels + "outrider-small";
    options.threads = 2;
    options.context = 128;
    options.max_batch = 2;
    options.packed_cache = folder_;
    options.speculation.decoding_type = *find_method(drafter);
    options.speculation.speculative_model = kModels + "outrider-draft";
    return options;
  }

  // The engine with the least memory, in steps of a megabyte, that can run.
  static std::unique_ptr<Engine> open_smallest(EngineOptions options) {
    for (int64_t megabytes = 16; megabytes < 4096; ++megabytes) {
      options.memory_limit = megabytes << 20;
      auto engine = Engine::open(options);
      if (engine.ok()) return std::move(engine).value();
      EXPECT_NE(engine.error().message.find("raise --memory"), std::string::npos) << engine.error().message;
    }
    return nullptr;
  }

  static Result<PlannedMemory> plan(EngineOptions options, int64_t limit) {
    options.memory_limit = limit;
    OUTRIDER_TRY(const OpenedFiles files, open_files(Names(options)));
    return plan_parts(files);
  }

  // The engine as commands open it, with the best drafter that is found.
  static Result<std::unique_ptr<Engine>> open_with_found_drafter(EngineOptions options, int64_t limit) {
    options.memory_limit = limit;
    Names names(options);
    names.finds_drafter = true;
    return open_engine(std::move(names));
  }

  static Result<Completion> complete(Engine& engine, double temperature) {
    Request request;
    request.prompt = engine.tokenize("Once upon a time, Lily found a red ball. Lily and the red ball");
    request.max_tokens = 24;
    request.sampling.temperature = temperature;
    request.sampling.seed = 3;
    request.ignore_eos = true;
    return engine.generate(request);
  }

  fs::path folder_;
};

TEST_F(MemoryLimit, TextIsThatOfAnEngineInMemory) {
  for (const char* drafter : {"none", "ngram", "draft_target", "early_exit"}) {
    SCOPED_TRACE(drafter);
    const auto whole = Engine::open(options_for(drafter));
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    const auto engine = open_smallest(options_for(drafter));
    ASSERT_NE(engine, nullptr);
    EXPECT_GT(engine->info().streamed_bytes, 0);
    EXPECT_GT(engine->info().read_rate, 0);
    for (const double temperature : {0.0, 1.0}) {
      const auto expected = complete(**whole, temperature);
      const auto found = complete(*engine, temperature);
      ASSERT_TRUE(expected.ok() && found.ok());
      EXPECT_EQ(found->tokens, expected->tokens);
    }
  }
}

TEST_F(MemoryLimit, ThePlanTellsTheLeastLimit) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer takes memory that no plan counts";
  for (const char* drafter : {"none", "ngram", "draft_target"}) {
    SCOPED_TRACE(drafter);
    const EngineOptions options = options_for(drafter);
    const auto planned = plan(options, 1);
    ASSERT_TRUE(planned.ok()) << planned.error().message;
    EXPECT_FALSE(fs::exists(folder_)) << "a plan packs nothing";
    EngineOptions enough = options, little = options;
    enough.memory_limit = planned->needed();
    little.memory_limit = planned->needed() / 10 * 9;
    const auto refused = Engine::open(little);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("raise --memory"), std::string::npos) << refused.error().message;
    const auto opened = Engine::open(enough);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_GT(planned->layers.bytes, 0);
    EXPECT_LE((*opened)->info().streamed_bytes, planned->layers.bytes);
    fs::remove_all(folder_);
  }
}

// A long text fills the cache; the plan has a little more than usual for lists and stacks.
TEST_F(MemoryLimit, ThePlanTellsWhatALongTextTakes) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer takes memory that no plan counts";
  for (const KvCacheType type : {KvCacheType::kQ8_0, KvCacheType::kF32}) {
    EngineOptions options = options_for("none");
    options.context = 1024;
    options.max_batch = 8;
    options.kv_cache_type = type;
    const auto planned = plan(options, int64_t{1} << 40);
    ASSERT_TRUE(planned.ok()) << planned.error().message;
    options.packed_cache.clear();
    const auto engine = Engine::open(options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    for (TokenId first = 0; first < 8; ++first) {
      Request request{.prompt = std::vector<TokenId>(1000, first), .max_tokens = 24, .ignore_eos = true};
      ASSERT_TRUE((*engine)->submit(std::move(request)).ok());
    }
    while ((*engine)->step()) {
    }
    constexpr int64_t kReserve = int64_t{10} << 20;
    const int64_t found = resident_memory();
    EXPECT_LT(found, planned->needed() + planned->needed() / 20);
    EXPECT_GT(found, planned->needed() - kReserve - planned->needed() / 20);
  }
}

TEST_F(MemoryLimit, DraftersThatWereGivenUpLeaveNothing) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer takes memory that no plan counts";
  EngineOptions options = options_for("auto");
  options.speculation = parse_speculative("auto")->options;
  const auto planned = plan(options, 1);
  ASSERT_TRUE(planned.ok()) << planned.error().message;
  const auto opened = open_with_found_drafter(options, planned->needed());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const auto refused = open_with_found_drafter(options, planned->needed() / 10 * 9);
  EXPECT_FALSE(refused.ok());
}

TEST_F(MemoryLimit, AFileThatCannotBeReadEndsTheRequest) {
  const auto engine = open_smallest(options_for("ngram"));
  ASSERT_NE(engine, nullptr);
  for (const auto& entry : fs::directory_iterator(folder_)) fs::resize_file(entry.path(), 4096);
  const auto completion = complete(*engine, 0);
  ASSERT_FALSE(completion.ok());
  EXPECT_EQ(completion.error().kind, ErrorKind::kIo);
  EXPECT_NE(completion.error().message.find("cannot read"), std::string::npos) << completion.error().message;
}

}  // namespace
}  // namespace outrider
