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
#include "ranks/neighbour_links.h"
#include "ranks/peer_watch.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModuleFile = "liboutrider_mpi.so";

// Beside the program, as it is built, or where it is installed.
Result<const OutriderMpi*> load_module() {
  std::error_code code;
  const fs::path folder = fs::read_symlink("/proc/self/exe", code).parent_path();
  std::string reason =
      "it is not there; ./dev build makes both, and cmake --install BUILD --component ranks "
      "installs it";
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
      for (int other = 0; other < size(); ++other) {
        while (has_unflushed(other)) progress(other);
      }
    } catch (const RankFailure&) {
      return;
    }
    if (watch_.ended() < 0) mpi_.stop();
  }

  // Every rank learns which process each other one is, and is linked to the ranks of its machine if both can
  // reach one another.
  void meet(bool share_memory) {
    struct Introduction {
      ProcessPlace place;
      int inbox = NeighbourLinks::kNoInbox;
    };
    NeighbourLinks links = share_memory ? NeighbourLinks(size(), rank()) : NeighbourLinks();
    const Introduction own = {ProcessPlace::own(), links.inbox()};
    const auto ranks = exchange<Introduction>([&](int) { return own; });
    std::vector<ProcessPlace> places;
    for (const Introduction& other : ranks) places.push_back(other.place);
    watch_ = PeerWatch(places, rank());
    const auto is_reached = exchange<uint8_t>([&](int other) {
      const auto& [place, inbox] = ranks[static_cast<size_t>(other)];
      return static_cast<uint8_t>(other != rank() && place.is_beside(own.place) &&
                                  links.add(other, static_cast<pid_t>(place.process), inbox));
    });
    for (int other = 0; other < size(); ++other) {
      if (is_reached[static_cast<size_t>(other)] == 0 && links.to(other) != nullptr) links.remove(other);
    }
    links_ = std::move(links);
  }

  // The end of the process tells the other ranks.
  void fail() override { has_failed_ = true; }
  int ended() const override { return watch_.ended(first_spare_); }

  int neighbours() const override { return watch_.neighbours() + 1; }
  int place() const override { return watch_.neighbours(rank()); }

  void receive(std::span<std::byte> data, int from) override {
    if (NeighbourLink* link = links_.to(from)) {
      int64_t count = 0;
      return wait(from, [&] {
        count += link->read(data.subspan(static_cast<size_t>(count)));
        return count == std::ssize(data);
      });
    }
    void* request = nullptr;
    check(mpi_.begin_receive(data.data(), std::ssize(data), from, &request), from);
    wait(from, [&] { return is_done(request, from); });
  }

  bool has_message(int from) override {
    hand_over();
    if (has_failed_ || watch_.ended(first_spare_) >= 0 || (is_spare(from) && watch_.has_ended(from)))
      return true;
    if (const NeighbourLink* link = links_.to(from)) return link->has_bytes();
    int has_arrived = 0;
    return mpi_.probe(from, &has_arrived) != 0 || has_arrived != 0;
  }

 private:
  // A message that MPI may still read.
  struct Sent {
    void* request = nullptr;
    int to = 0;
    std::vector<std::byte> data;
  };

  // Sends value_for(rank) to every other rank, and returns what each of them has for this rank; through MPI.
  template <typename Value, typename ValueFor>
  std::vector<Value> exchange(ValueFor&& value_for) {
    std::vector<Value> values(static_cast<size_t>(size()), value_for(rank()));
    for (int other = 0; other < size(); ++other) {
      const Value value = value_for(other);
      if (other != rank()) send(std::as_bytes(std::span(&value, 1)), other);
    }
    for (int other = 0; other < size(); ++other) {
      if (other != rank())
        receive(std::as_writable_bytes(std::span(&values[static_cast<size_t>(other)], 1)), other);
    }
    return values;
  }

  bool has_unflushed(int rank) const { return links_.to(rank) != nullptr && !links_.to(rank)->is_flushed(); }

  void post(std::span<const std::byte> data, int to) override {
    if (has_failed_) throw RankFailure(to);
    if (NeighbourLink* link = links_.to(to)) return link->post(data);
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

  // Moves on what was sent and is still here.
  void hand_over() {
    forget_sent();
    for (int other = 0; other < size(); ++other) {
      if (!has_unflushed(other)) continue;
      links_.to(other)->flush();
      if (is_spare(other) && watch_.has_ended(other)) links_.to(other)->forget_kept();
    }
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
  template <typename HasArrived>
  void wait(int peer, HasArrived&& has_arrived) {
    using Clock = std::chrono::steady_clock;
    constexpr int kPolls = 64;
    constexpr auto kBusy = std::chrono::milliseconds(2);
    const Clock::time_point start = Clock::now();
    for (int poll = 1; !has_arrived(); ++poll) {
      if (poll % kPolls != 0) continue;
      hand_over();
      if (Clock::now() - start < kBusy) continue;
      progress(peer);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  void progress(int peer) {
    hand_over();
    if (const int ended = watch_.ended(first_spare_); ended >= 0) check(1, ended);
    if (has_failed_ || (is_spare(peer) && watch_.has_ended(peer))) throw RankFailure(peer);
  }

  const OutriderMpi& mpi_;
  PeerWatch watch_;
  std::vector<Sent> sends_;
  std::vector<Sent> lost_;  // to ranks that have ended
  NeighbourLinks links_;    // none while ranks meet
  int first_spare_;
  bool has_failed_ = false;
};

}  // namespace

Result<std::unique_ptr<Communicator>> join_mpi_job(int spare, bool share_memory) {
  OUTRIDER_TRY(const OutriderMpi* mpi, load_module());
  int rank = 0;
  int size = 0;
  if (const int error = mpi->start(&rank, &size); error != 0) {
    return resource_error("expected MPI to start, found its error " + std::to_string(error) +
                          "; start the job with mpirun");
  }
  auto ranks = std::make_unique<MpiRanks>(*mpi, rank, size, spare);
  ranks->meet(share_memory);
  return std::unique_ptr<Communicator>(std::move(ranks));
}

}  // namespace outrider
