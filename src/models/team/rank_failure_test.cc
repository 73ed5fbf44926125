// SPDX-License-Identifier: Apache-2.0
// Ranks that end at any moment: rank 0 hears of it at once, and no other rank waits for ever.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "models/backend/device/make_backends.h"
#include "models/model_test_data.h"
#include "models/team/rank_worker.h"
#include "models/team/ranked_model.h"
#include "ranks/mortal_rank.h"
#include "ranks/thread_ranks.h"

namespace outrider {
namespace {

#ifdef OUTRIDER_SLOW_TEST
constexpr int kKills = 1000;
#else
constexpr int kKills = 60;
#endif

// Opens a model and runs passes. Returns whether a failure was reported.
bool run_passes(Communicator& root, int shards, int stages, const ModelOptions& how) {
  auto file = open_model(model_data("llama"));
  ThreadPool pool(1);
  try {
    ModelOptions options = how;
    options.pool = &pool;
    const auto model = RankedModel::load(
        *file, options, {.joined = &root, .shards = shards, .stages = stages, .threads = 1, .micro_rows = 2});
    if (!model.ok()) return true;
    KvShape shape = (*model)->kv_shape();
    shape.page_count = 4;
    KvCache cache(shape, KvOptions(), (*model)->make_storage(shape));
    EXPECT_TRUE((*model)->share_cache(cache).ok());
    const std::vector<TokenId> tokens = random_tokens(12, (*model)->config().vocab_size, 1);
    KvSequence sequence = cache.open(tokens);
    for (int pass = 0; pass < 3; ++pass)
      run_chunk(**model, cache, sequence, std::span(tokens).subspan(static_cast<size_t>(4 * pass), 4));
  } catch (const RankFailure&) {
    return true;
  }
  return false;
}

void kill_ranks(const ModelOptions& how, int kills) {
  std::mt19937 random(7);
  int reported = 0;
  for (int kill = 0; kill < kills; ++kill) {
    const int shards = 1 + static_cast<int>(random() % 3);
    const int stages = shards == 1 ? 2 : 1 + static_cast<int>(random() % 2);
    ThreadRanks job(shards * stages);
    const int victim = static_cast<int>(random() % static_cast<uint32_t>(shards * stages));
    const auto end = static_cast<int64_t>(1 + random() % 120);
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int rank = 1; rank < shards * stages; ++rank) {
      threads.emplace_back([&, rank] {
        MortalRank own(job.of(rank), rank == victim ? end : 0);
        try {
          serve_rank(own);
        } catch (const RankFailure&) {
        }
      });
    }
    MortalRank root(job.of(0), victim == 0 ? end : 0);
    reported += run_passes(root, shards, stages, how) ? 1 : 0;
    end_job(root);
    for (std::thread& thread : threads) thread.join();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << "kill " << kill;
  }
  EXPECT_GT(reported, kills / 2);
}

TEST(RankFailure, NoRankWaitsForOneThatHasEnded) {
  kill_ranks({.kernels = *select_kernels("reference"), .weights = {}}, kKills);
}

TEST(RankFailure, NoDeviceWaitsForARankThatHasEnded) {
  const auto kernels = select_device_kernels();
  if (!kernels.ok()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  kill_ranks({.kernels = *kernels, .weights = {}, .device = "emulated"}, kKills / 2);
}

}  // namespace
}  // namespace outrider
