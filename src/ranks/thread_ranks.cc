// SPDX-License-Identifier: Apache-2.0
#include "ranks/thread_ranks.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "base/check.h"

namespace outrider {

struct ThreadRanks::Job {
  // Messages on their way from one rank to another.
  struct Channel {
    std::mutex mutex;
    std::condition_variable arrived;
    std::deque<std::vector<std::byte>> messages;
    std::atomic<int> count{0};  // of messages
  };

  Job(int ranks, int spare)
      : size(ranks),
        channels(static_cast<size_t>(ranks * ranks)),
        ended(std::make_unique<std::atomic<bool>[]>(static_cast<size_t>(ranks))),
        first_spare(ranks - spare) {}
  Channel& channel(int from, int to) { return channels[static_cast<size_t>(from * size + to)]; }

  void fail(int rank) {
    int none = -1;
    ended[static_cast<size_t>(rank)] = true;
    if (rank < first_spare) failed.compare_exchange_strong(none, rank);
    for (Channel& channel : channels) {
      const std::lock_guard lock(channel.mutex);
      channel.arrived.notify_all();
    }
  }

  // Whether no more messages of that rank can be waited for.
  bool is_over(int rank) const { return failed >= 0 || ended[static_cast<size_t>(rank)]; }
  void check(int rank) const {
    if (const int first = failed; first >= 0) throw RankFailure(first);
    if (ended[static_cast<size_t>(rank)]) throw RankFailure(rank);
  }

  int size;
  std::vector<Channel> channels;
  std::unique_ptr<std::atomic<bool>[]> ended;  // [ranks]
  int first_spare;
  std::atomic<int> failed{-1};  // the first rank that ended without being spare; -1: none has
};

class ThreadRanks::Member final : public Communicator {
 public:
  Member(Job& job, int rank) : Communicator(rank, job.size), job_(job) {}

  void fail() override { job_.fail(rank()); }
  int ended() const override { return job_.failed; }

  int neighbours() const override { return size(); }
  int place() const override { return rank(); }

  void receive(std::span<std::byte> data, int from) override {
    Job::Channel& channel = job_.channel(from, rank());
    wait_a_little(channel, from);
    std::unique_lock lock(channel.mutex);
    channel.arrived.wait(lock, [&] { return !channel.messages.empty() || job_.is_over(from); });
    job_.check(channel.messages.empty() ? from : rank());  // what a spare rank has sent arrives
    const std::vector<std::byte> message = std::move(channel.messages.front());
    channel.messages.pop_front();
    --channel.count;
    lock.unlock();
    OUTRIDER_CHECK(message.size() == data.size());
    std::ranges::copy(message, data.begin());
  }

  bool has_message(int from) override { return job_.channel(from, rank()).count > 0 || job_.is_over(from); }

 private:
  void post(std::span<const std::byte> data, int to) override {
    job_.check(to);
    Job::Channel& channel = job_.channel(rank(), to);
    const std::lock_guard lock(channel.mutex);
    channel.messages.emplace_back(data.begin(), data.end());
    ++channel.count;
    channel.arrived.notify_one();
  }

  // The other rank is usually in the same layer, and sleeping takes longer than its rest.
  void wait_a_little(const Job::Channel& channel, int from) const {
    constexpr int kTurns = 200;
    for (int turn = 0; turn < kTurns && channel.count == 0 && !job_.is_over(from); ++turn)
      std::this_thread::yield();
  }

  Job& job_;
};

ThreadRanks::ThreadRanks(int size, int spare) : job_(std::make_unique<Job>(size, spare)) {
  for (int rank = 0; rank < size; ++rank) members_.push_back(std::make_unique<Member>(*job_, rank));
}

ThreadRanks::~ThreadRanks() = default;

Communicator& ThreadRanks::of(int rank) { return *members_[static_cast<size_t>(rank)]; }

}  // namespace outrider
