// SPDX-License-Identifier: Apache-2.0
// Ranks with fake GPUs that exchange over a fake NCCL: their passes are lists with the bits of one processor.
// Where a rank has no NCCL all go through this machine's memory, and a rank that ends ends all.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

#include "device/fake_nccl.h"
#include "models/backend/backend_kinds.h"
#include "models/backend/device/device_backend.h"
#include "models/backend/device/fake_gpu.h"
#include "models/backend/device/make_backends.h"
#include "models/decoder.h"
#include "models/model_test_data.h"
#include "ranks/peer_watch.h"
#include "ranks/thread_ranks.h"

namespace outrider {
namespace {

constexpr int kPasses[] = {5, 1, 1, 3, 70, 2, 1, 4, 4};  // rows
constexpr int kListed = 8;                               // all but the long one

const KernelTable* table_of_gpus() {
  const auto table = select_device_kernels();
  return table.ok() ? *table : nullptr;
}

// A rank's part of a model on a GPU, or the whole model on this machine where there is none.
class LinkedPart {
 public:
  LinkedPart(const std::string& name, const ModelPart& part, CudaDevice* gpu) : pool_(1) {
    auto file = open_model(model_data(name));
    EXPECT_TRUE(file.ok()) << file.error().message;
    const ModelOptions options{
        .kernels = table_of_gpus(), .pool = &pool_, .weights = DType::kQ8_0, .part = part};
    const auto load = [&] { return load_decoder_weights(*file, options); };
    auto backend = gpu == nullptr ? make_backend(file->config, options, load)
                                  : make_device_backend(*gpu, file->config, options, load);
    EXPECT_TRUE(backend.ok()) << backend.error().message;
    model_ = std::make_unique<Decoder>(file->config, options, std::move(*backend));
    KvShape shape = small_cache_shape(*model_);
    cache_ = std::make_unique<KvCache>(shape, KvOptions(), model_->make_storage(shape));
  }

  Decoder& model() { return *model_; }
  RankLinks& links() { return dynamic_cast<DeviceBackend&>(model_->backend()).ranks(); }

  // The logits of all rows; `before` is called before each pass.
  std::vector<float> run(const std::function<void(int pass)>& before = [](int) {}) {
    KvSequence sequence = cache_->open({});
    std::vector<float> numbers;
    for (int pass = 0; pass < static_cast<int>(std::size(kPasses)); ++pass) {
      before(pass);
      const int count = kPasses[pass];
      const auto tokens = random_tokens(count, model_->config().vocab_size, static_cast<uint32_t>(pass));
      auto transaction = cache_->stage(sequence, count);
      ForwardBatch batch;
      append_chain(batch, sequence, *transaction, tokens, LogitsWanted::kAll);
      const auto logits = model_->forward(batch, *cache_);
      numbers.insert(numbers.end(), logits.begin(), logits.end());
      std::vector<int> path(static_cast<size_t>(count));
      std::iota(path.begin(), path.end(), 0);
      transaction->commit(path, tokens);
    }
    return numbers;
  }

 private:
  ThreadPool pool_;
  std::unique_ptr<Decoder> model_;
  std::unique_ptr<KvCache> cache_;
};

struct Ranks {
  int shards = 1;
  int stages = 1;
};

// Runs all ranks, each on a thread with a GPU.
void run_ranks(const std::string& name, Ranks division,
               const std::function<void(LinkedPart& part, CudaDevice& gpu, Communicator& rank)>& run) {
  const int size = division.shards * division.stages;
  ThreadRanks job(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto gpu = fake_gpu();
      LinkedPart part(name, part_of(job.of(rank), division.shards, division.stages), gpu.get());
      run(part, *gpu, job.of(rank));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// As if each rank were a process.
ProcessPlace place_of(const Communicator& rank) { return {.process = 1 + rank.rank()}; }

bool has_logits(const Communicator& rank, Ranks division) {
  return rank.rank() == (division.stages - 1) * division.shards;
}

TEST(LinkedRanks, ListsOverNcclHaveTheBitsOfOneProcessor) {
  if (table_of_gpus() == nullptr) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const char* name : {"llama_tied", "gemma3", "qwen2_moe"}) {
    const std::vector<float> expected = LinkedPart(name, {}, nullptr).run();
    for (const Ranks division : {Ranks{2, 1}, Ranks{4, 1}, Ranks{3, 1}, Ranks{1, 2}, Ranks{2, 2}}) {
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(division.shards) + " shards, " +
                   std::to_string(division.stages) + " stages");
      testing::internal::CaptureStderr();
      run_ranks(name, division, [&](LinkedPart& part, CudaDevice& gpu, Communicator& rank) {
        part.links().link_over(fake_nccl_library(), place_of(rank));
        EXPECT_EQ(part.model().backend().repeat_problem(), "");
        const int64_t messages = rank.traffic().messages, lists = gpu.counts().lists;
        const std::vector<float> numbers = part.run();
        EXPECT_EQ(rank.traffic().messages, messages);
        EXPECT_EQ(gpu.counts().lists - lists, kListed);
        if (has_logits(rank, division)) {
          EXPECT_EQ(numbers, expected);
        }
      });
      EXPECT_NE(testing::internal::GetCapturedStderr().find("GPUs exchange numbers over NCCL 2.27.3"),
                std::string::npos);
      EXPECT_EQ(fake_nccl().ranks, 0);
    }
  }
}

// Ranks agree, whichever of them it is that cannot.
TEST(LinkedRanks, WithoutNcclNumbersGoThroughThisMachinesMemory) {
  if (table_of_gpus() == nullptr) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  constexpr Ranks kShape{2, 2};
  const std::vector<float> expected = LinkedPart("llama", {}, nullptr).run();
  NcclLibrary other = fake_nccl_library(), mute = fake_nccl_library();
  other.version = 21000;
  mute.join = [](NcclLibrary::Group*, int, NcclLibrary::Id, int) { return 5; };
  const auto library_of = [](const Result<NcclLibrary>& nccl, int at) {
    return [=](int rank) { return rank == at ? nccl : fake_nccl_library(); };
  };
  const auto here = [](const Communicator&) { return ProcessPlace::own(); };
  struct Case {
    std::function<Result<NcclLibrary>(int rank)> library;
    std::function<ProcessPlace(const Communicator&)> place;
    std::string reason;
  };
  for (const Case& one :
       {Case{library_of(open_nccl("libnone.so.2"), 0), place_of, "there is no NCCL: libnone.so.2"},
        Case{library_of(open_nccl("libnone.so.2"), 3), place_of, "rank 3 has no NCCL"},
        Case{library_of(other, 2), place_of, "rank 2 has another version of NCCL"},
        Case{[&](int) { return mute; }, place_of, "NCCL 2.27.3 says: a fake error"},
        Case{library_of(fake_nccl_library(), 0), here,
             "ranks are threads of one process; start them with mpirun for NCCL"}}) {
    SCOPED_TRACE(one.reason);
    testing::internal::CaptureStderr();
    run_ranks("llama", kShape, [&](LinkedPart& part, CudaDevice& gpu, Communicator& rank) {
      part.links().link_over(one.library(rank.rank()), one.place(rank));
      EXPECT_EQ(part.model().backend().repeat_problem(), "parts on other ranks");
      const std::vector<float> numbers = part.run();
      EXPECT_EQ(gpu.counts().lists, 0);
      if (has_logits(rank, kShape)) {
        EXPECT_EQ(numbers, expected);
      }
    });
    const std::string line = testing::internal::GetCapturedStderr();
    EXPECT_NE(line.find("GPUs exchange numbers through this machine's memory: " + one.reason),
              std::string::npos)
        << line;
  }
}

// Rank 1 ends before a pass. The others end with an error, and no number is anything else than right.
TEST(LinkedRanks, ARankThatEndsEndsAll) {
  if (table_of_gpus() == nullptr) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const int end : {2, 4}) {  // before a list, and before a pass without one
    const auto start = std::chrono::steady_clock::now();
    run_ranks("llama", {3, 1}, [&](LinkedPart& part, CudaDevice&, Communicator& rank) {
      part.links().link_over(fake_nccl_library(), place_of(rank));
      int reached = 0;
      const auto run = [&] {
        part.run([&](int pass) {
          reached = pass;
          if (rank.rank() != 1 || pass != end) return;
          rank.fail();
          throw RankFailure(1);
        });
      };
      EXPECT_THROW(run(), RankFailure);
      EXPECT_EQ(reached, end);
    });
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    EXPECT_EQ(fake_nccl().ranks, 0);
  }
}

}  // namespace
}  // namespace outrider
