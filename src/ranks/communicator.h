// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job exchange bytes. There are no sums: every exchange moves numbers as they are, in the
// order of ranks, so no bit depends on timing or on the number of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace outrider {

// Another rank has ended, so an exchange cannot be completed.
class RankFailure : public std::runtime_error {
 public:
  explicit RankFailure(int rank)
      : std::runtime_error("expected an answer of rank " + std::to_string(rank) +
                           ", found that it has ended; start the job again") {}
  explicit RankFailure(const std::string& text) : std::runtime_error(text) {}
};

// The messages that a rank has sent so far.
struct Traffic {
  int64_t messages = 0;
  int64_t bytes = 0;
};

// The ranks of a job, as one of them sees them. Messages from one rank to another arrive in the order in
// which they were sent. Used by one thread at a time.
class Communicator {
 public:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Ranks that share this one's machine, itself included.
  virtual int neighbours() const = 0;
  // The number of this rank among them, from 0 on, in the order of ranks.
  virtual int place() const = 0;

  // Returns without waiting for the receiver. Throws RankFailure.
  void send(std::span<const std::byte> data, int to) {
    ++traffic_.messages;
    traffic_.bytes += std::ssize(data);
    post(data, to);
  }
  // Waits for the next message of that rank, which must have as many bytes. Throws RankFailure.
  virtual void receive(std::span<std::byte> data, int from) = 0;
  // Whether receive() has something to do, be it to throw; this function never waits.
  virtual bool has_message(int from) = 0;

  // This rank takes no further part: exchanges that need it throw RankFailure at the other ranks. A job may
  // have spare ranks, the last ones; where any other rank has ended, all exchanges of the job throw.
  virtual void fail() = 0;

  // The first rank that has ended and without which exchanges throw; -1: none has. Any thread may ask, and
  // where mpirun watches a rank it need not be told here.
  virtual int ended() const = 0;

  const Traffic& traffic() const { return traffic_; }

 private:
  virtual void post(std::span<const std::byte> data, int to) = 0;

  int rank_;
  int size_;
  Traffic traffic_;
};

}  // namespace outrider
