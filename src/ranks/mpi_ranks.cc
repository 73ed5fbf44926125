// SPDX-License-Identifier: Apache-2.0
#include "ranks/mpi_ranks.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "ranks/mpi/mpi_module.h"
#include "ranks/peer_watch.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModuleFile = "liboutrider_mpi.so";

// Beside the program, as it is built, or where it is installed.
Result<const OutriderMpi*> load_module() {
  std::error_code code;
  const fs::path folder = fs::read_symlink("/proc/self/exe", code).parent_path();
  std::string reason = "it was not built, which needs libopenmpi-dev";
  for (const fs::path& path :
       {folder / kModuleFile, folder.parent_path() / OUTRIDER_MODULE_FOLDER / kModuleFile}) {
    if (!fs::exists(path, code)) continue;
    // The parts that MPI itself loads look for its symbols among the global ones.
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module != nullptr) {
      return reinterpret_cast<OutriderMpiModule>(dlsym(module, kOutriderMpiSymbol))();
    }
    reason = dlerror();
  }
  return resource_error(std::string("expected ") + kModuleFile + " beside the program, for ranks on MPI: " +
                        reason + "; without mpirun ranks are threads");
}

class MpiRanks final : public Communicator {
 public:
  MpiRanks(const OutriderMpi& mpi, int rank, int size, int spare)
      : Communicator(rank, size), mpi_(mpi), first_spare_(size - spare) {}

  ~MpiRanks() override {
    if (has_failed_) return;  // to leave the job means to wait for all ranks
    try {
      while (!sends_.empty()) progress(sends_.front().to);
    } catch (const RankFailure&) {
      return;
    }
    if (watch_.ended() < 0) mpi_.stop();
  }

  // Every rank learns which process each other one is.
  void meet() {
    const ProcessPlace own = ProcessPlace::own();
    std::vector<ProcessPlace> places(static_cast<size_t>(size()), own);
    for (int other = 0; other < size(); ++other) {
      if (other != rank()) send(std::as_bytes(std::span(&own, 1)), other);
    }
    for (int other = 0; other < size(); ++other) {
      if (other != rank())
        receive(std::as_writable_bytes(std::span(&places[static_cast<size_t>(other)], 1)), other);
    }
    watch_ = PeerWatch(places, rank());
  }

  // The end of the process tells the others.
  void fail() override { has_failed_ = true; }

  int neighbours() const override { return watch_.neighbours() + 1; }

  void receive(std::span<std::byte> data, int from) override {
    void* request = nullptr;
    check(mpi_.begin_receive(data.data(), std::ssize(data), from, &request), from);
    wait(request, from);
  }

 private:
  // A message that MPI may still read.
  struct Sent {
    void* request = nullptr;
    int to = 0;
    std::vector<std::byte> data;
  };

  void post(std::span<const std::byte> data, int to) override {
    if (has_failed_) throw RankFailure(to);
    Sent& sent = sends_.emplace_back(Sent{.to = to, .data = {data.begin(), data.end()}});
    check(mpi_.begin_send(sent.data.data(), std::ssize(sent.data), to, &sent.request), to);
    forget_sent();
  }

  bool is_spare(int rank) const { return rank >= first_spare_; }

  // Messages to a spare rank that has ended never arrive. MPI may still read them, so they are kept.
  void forget_sent() {
    std::erase_if(sends_, [&](Sent& sent) {
      int is_done = 0;
      const int error = mpi_.done(sent.request, &is_done);
      if (is_done != 0) return true;
      const bool is_lost = is_spare(sent.to) && (error != 0 || watch_.has_ended(sent.to));
      if (!is_lost) return check(error, sent.to), false;
      lost_.push_back(std::move(sent));
      return true;
    });
  }

  void check(int error, int peer) {
    if (error == 0) return;
    has_failed_ = has_failed_ || !is_spare(peer);
    throw RankFailure(peer);
  }

  bool is_done(void* request, int peer) {
    int is_done = 0;
    check(mpi_.done(request, &is_done), peer);
    return is_done != 0;
  }

  // Polls, because MPI's own waiting would not notice that the other rank has ended. That rank is usually in
  // the same layer, and a processor given up for it may be back only after another process has used its time
  // slice, so a pass keeps it. A rank without work sleeps between polls.
  void wait(void* request, int peer) {
    using Clock = std::chrono::steady_clock;
    constexpr int kPolls = 64;
    constexpr auto kBusy = std::chrono::milliseconds(2);
    const Clock::time_point start = Clock::now();
    for (int poll = 1; !is_done(request, peer); ++poll) {
      if (poll % kPolls != 0 || Clock::now() - start < kBusy) continue;
      progress(peer);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  void progress(int peer) {
    forget_sent();
    if (const int ended = watch_.ended(first_spare_); ended >= 0) check(1, ended);
    if (has_failed_ || (is_spare(peer) && watch_.has_ended(peer))) throw RankFailure(peer);
  }

  const OutriderMpi& mpi_;
  PeerWatch watch_;
  std::vector<Sent> sends_;
  std::vector<Sent> lost_;  // to ranks that have ended
  int first_spare_;
  bool has_failed_ = false;
};

}  // namespace

Result<std::unique_ptr<Communicator>> join_mpi_job(int spare) {
  OUTRIDER_TRY(const OutriderMpi* mpi, load_module());
  int rank = 0;
  int size = 0;
  if (const int error = mpi->start(&rank, &size); error != 0) {
    return resource_error("expected MPI to start, found its error " + std::to_string(error) +
                          "; start the job with mpirun");
  }
  auto ranks = std::make_unique<MpiRanks>(*mpi, rank, size, spare);
  ranks->meet();
  return std::unique_ptr<Communicator>(std::move(ranks));
}

}  // namespace outrider
