// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "platform/file_descriptor.h"

namespace outrider {

// A process and the system that numbers it, as bytes that ranks send one another.
struct ProcessPlace {
  std::array<char, 40> start = {};  // of the machine, a number that no other start has
  uint64_t name_space = 0;          // in which the process has its number
  int64_t process = 0;

  static ProcessPlace own();
  bool is_beside(const ProcessPlace& other) const {
    return start == other.start && name_space == other.name_space;
  }
};

// Notices at once that another process of this machine has ended, however it did. The system itself tells, so
// that a slow process is never taken for one that has ended. mpirun watches the processes of other machines.
class PeerWatch {
 public:
  PeerWatch() = default;
  // places: [ranks], of which `own` is this process
  PeerWatch(std::span<const ProcessPlace> places, int own);

  // The lowest rank below `limit` whose process has ended; -1: none has.
  int ended(int limit = std::numeric_limits<int>::max()) const;
  bool has_ended(int rank) const;
  // Other ranks of this machine, and how many of them are below a rank.
  int neighbours() const { return static_cast<int>(peers_.size()); }
  int neighbours(int below) const;

 private:
  struct Peer {
    int rank = 0;
    std::unique_ptr<FileDescriptor> process;

    bool has_ended() const;
  };
  std::vector<Peer> peers_;
};

}  // namespace outrider
