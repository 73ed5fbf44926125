// SPDX-License-Identifier: Apache-2.0
// Exchanges between fake GPUs over a fake NCCL: their bytes and order, at once and in lists, and ranks that
// end or never come.
#include "device/nccl_links.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "device/device_list.h"
#include "device/fake_nccl.h"

namespace outrider {
namespace {

constexpr char kGpuCode[] = "sm_90";

std::unique_ptr<CudaDevice> open_linked_gpu() {
  const std::vector<CudaImage> images = {{.major = 9, .code = kGpuCode}};
  return find_cuda_device(fake_cuda_driver(), images, 13000).device;
}

// GpuWords of a rank on its GPU.
class GpuWords {
 public:
  GpuWords(Device& device, std::vector<int> words)
      : device_(device), count_(words.size()), memory_(device, std::ssize(words) * kBytes) {
    device.upload(std::as_bytes(std::span(words)), memory_.address());
  }
  DeviceAddress at(int64_t word) const {
    return memory_.address() + static_cast<DeviceAddress>(kBytes * word);
  }
  std::vector<int> read() {
    std::vector<int> words(count_);
    device_.download(memory_.address(), std::as_writable_bytes(std::span(words)));
    return words;
  }
  static constexpr int64_t kBytes = sizeof(int);

 private:
  Device& device_;
  size_t count_;
  DeviceBuffer memory_;
};

// Ranks with links, each on a thread.
class LinkedJob {
 public:
  explicit LinkedJob(int size) : size_(size) {
    fake_nccl().failure = fake_nccl().join_code = fake_nccl().call_code = 0;
    fake_nccl_library().make_id(&id_);
  }

  Result<std::unique_ptr<NcclLinks>> join(CudaDevice& device, int rank) {
    return NcclLinks::join(
        device, fake_nccl_library(),
        {.id = id_, .rank = rank, .size = size_, .has_ended = [this] { return has_ended.load(); }});
  }
  template <typename Run>
  void run(Run&& run) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        const auto device = open_linked_gpu();
        auto links = join(*device, rank);
        ASSERT_TRUE(links.ok()) << links.error().message;
        run(*device, **links, rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::atomic<bool> has_ended = false;
  int size_;
  NcclLibrary::Id id_ = {};
};

// All-gathers of unequal shares: rank r has r words, of which the last is read by no other one.
std::vector<DeviceTransfer> gather(const GpuWords& words, int rank, int size) {
  std::vector<DeviceTransfer> transfers;
  const auto begin = [](int of) { return int64_t{of} * (of - 1) / 2; };
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    if (rank > 0) transfers.push_back({words.at(begin(rank)), rank * GpuWords::kBytes, other, false});
    if (other > 0) transfers.push_back({words.at(begin(other)), other * GpuWords::kBytes, other, true});
  }
  return transfers;
}

std::vector<int> own_words(int rank, int count, int turn) {
  std::vector<int> words(static_cast<size_t>(count), -1);
  for (int i = 0; i < rank; ++i)
    words[static_cast<size_t>(rank * (rank - 1) / 2 + i)] = 100 * turn + 10 * rank + i;
  return words;
}

std::vector<int> all_words(int size, int count, int turn) {
  std::vector<int> words(static_cast<size_t>(count), -1);
  for (int rank = 0; rank < size; ++rank) {
    for (int i = 0; i < rank; ++i)
      words[static_cast<size_t>(rank * (rank - 1) / 2 + i)] = 100 * turn + 10 * rank + i;
  }
  return words;
}

TEST(NcclLinks, UnequalSharesArriveInOrder) {
  for (const int size : {1, 2, 4, 5}) {
    LinkedJob job(size);
    job.run([&](CudaDevice& device, NcclLinks& links, int rank) {
      for (int turn = 0; turn < 3; ++turn) {
        GpuWords words(device, own_words(rank, 12, turn));
        links.exchange(gather(words, rank, size));
        EXPECT_EQ(words.read(), all_words(size, 12, turn)) << "rank " << rank << " of " << size;
      }
      EXPECT_EQ(links.failure(), "");
    });
    EXPECT_EQ(fake_nccl().ranks, 0);
  }
}

TEST(NcclLinks, ListsExchangeWhenTheyRun) {
  constexpr int kSize = 3;
  LinkedJob job(kSize);
  job.run([&](CudaDevice& device, NcclLinks& links, int rank) {
    GpuWords words(device, own_words(rank, 12, 1)), copies(device, std::vector<int>(12));
    DeviceList list;
    list.exchange(links, gather(words, rank, kSize));
    list.copy(words.at(0), copies.at(0), 12 * GpuWords::kBytes);
    list.exchange(links, {});  // nothing
    EXPECT_EQ(std::ssize(list.entries()), 2);
    auto loaded = device.load(list);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(words.read(), own_words(rank, 12, 1));  // nothing has run
    for (int turn = 1; turn < 4; ++turn) {
      const std::vector<int> own = own_words(rank, 12, turn);
      device.upload(std::as_bytes(std::span(own)), words.at(0));
      (*loaded)->run();
      EXPECT_EQ(copies.read(), all_words(kSize, 12, turn));
    }
    EXPECT_FALSE((*loaded)->update(list));
    loaded->reset();
    EXPECT_EQ(fake_cuda().graphs, 0);
  });
}

TEST(NcclLinks, OldDriversCaptureNothing) {
  LinkedJob job(1);
  CudaDriver driver = fake_cuda_driver();
  driver.begin_capture = nullptr;
  const std::vector<CudaImage> images = {{.major = 9, .code = kGpuCode}};
  const auto device = find_cuda_device(driver, images, 13000).device;
  auto links = job.join(*device, 0);
  DeviceList list;
  list.exchange(**links, {{.at = 1, .bytes = 4}});
  EXPECT_FALSE(device->load(list).ok());
  EXPECT_EQ(fake_cuda().graphs, 0);
}

// The others wait for rank 1, on the GPU and in NCCL, when it ends.
TEST(NcclLinks, NobodyWaitsForARankThatHasEnded) {
  for (const bool lists : {false, true}) {
    constexpr int kSize = 3;
    LinkedJob job(kSize);
    const int aborted = fake_nccl().aborted;
    const auto start = std::chrono::steady_clock::now();
    job.run([&](CudaDevice& device, NcclLinks& links, int rank) {
      if (rank == 1) {
        job.has_ended = true;
        return;
      }
      GpuWords words(device, own_words(rank, 12, 1));
      const std::vector<DeviceTransfer> transfers = gather(words, rank, kSize);
      if (lists) {
        DeviceList list;
        list.exchange(links, transfers);
        auto loaded = device.load(list);
        (*loaded)->run();
      } else {
        links.exchange(transfers);
      }
      EXPECT_EQ(links.failure(), "a rank has ended");
      links.exchange(transfers);  // returns
    });
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    EXPECT_EQ(fake_nccl().aborted - aborted, kSize);
  }
}

TEST(NcclLinks, FailuresOfNcclAreTold) {
  for (std::atomic<int>* code : {&fake_nccl().call_code, &fake_nccl().failure}) {
    LinkedJob job(1);
    job.run([&](CudaDevice& device, NcclLinks& links, int) {
      GpuWords words(device, {1});
      *code = 2;
      for (int i = 0; i < 100 && links.failure().empty(); ++i) {
        links.exchange({});
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      EXPECT_EQ(links.failure(), "NCCL 2.27.3 says: a fake error");
    });
  }
}

TEST(NcclLinks, JoiningEndsWithoutTheOthers) {
  LinkedJob job(2);
  const auto device = open_linked_gpu();
  fake_nccl().join_code = 3;
  EXPECT_EQ(job.join(*device, 0).error().message, "NCCL 2.27.3 says: a fake error");
  fake_nccl().join_code = 0;
  job.has_ended = true;
  EXPECT_EQ(job.join(*device, 0).error().message, "a rank has ended");
  NcclLibrary::Group last = nullptr;  // so that the thread of the other one ends
  EXPECT_EQ(fake_nccl_library().join(&last, 2, job.id_, 1), 0);
  EXPECT_EQ(fake_nccl_library().leave(last), 0);
}

TEST(NcclLibrary, AMissingLibraryOrFunctionIsNamed) {
  const auto missing = open_nccl("libnone.so.2");
  ASSERT_FALSE(missing.ok());
  EXPECT_TRUE(missing.error().message.starts_with("there is no NCCL: libnone.so.2"))
      << missing.error().message;
  const auto other = open_nccl("libc.so.6");
  ASSERT_FALSE(other.ok());
  EXPECT_TRUE(other.error().message.starts_with("libc.so.6 lacks ncclGetVersion, ncclGetUniqueId"))
      << other.error().message;
}

}  // namespace
}  // namespace outrider
