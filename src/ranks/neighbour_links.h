// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "platform/file_descriptor.h"
#include "ranks/byte_ring.h"

namespace outrider {

// Memory of one process that others of its machine map as well. It has no name in a file system, so that a
// process that is killed leaves nothing behind.
class SharedMemory {
 public:
  // Zeros; nullptr: the system gives none.
  static std::unique_ptr<SharedMemory> make(size_t bytes);
  // The memory of another process, by the number of its file there; nullptr: it cannot be reached.
  static std::unique_ptr<SharedMemory> open(pid_t process, int file, size_t bytes);

  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int file() const { return file_.get(); }
  std::byte* data() { return data_; }

 private:
  SharedMemory(int file, size_t bytes);

  FileDescriptor file_;
  std::byte* data_ = nullptr;  // null: not mapped
  size_t size_;
};

// The way between this rank and another of the same machine.
class NeighbourLink {
 public:
  NeighbourLink(ByteRing out, ByteRing in, std::unique_ptr<SharedMemory> outbox)
      : out_(out), in_(in), outbox_(std::move(outbox)) {}

  // Returns without waiting for the other rank; what has no room yet is kept.
  void post(std::span<const std::byte> data);
  // Hands over what was kept, as far as there is room.
  void flush();
  bool is_flushed() const { return kept_.empty(); }
  void forget_kept() { kept_.clear(); }
  // Reads some of the bytes and returns their number.
  int64_t read(std::span<std::byte> data) { return in_.read(data); }
  bool has_bytes() const { return in_.has_bytes(); }

 private:
  ByteRing out_, in_;
  std::unique_ptr<SharedMemory> outbox_;  // of the other rank, where out_ lies
  std::vector<std::byte> kept_;
};

// The links of a rank to others of its machine. Each rank has an inbox, with a ring for every rank.
class NeighbourLinks {
 public:
  static constexpr int kNoInbox = -1;

  NeighbourLinks() = default;  // no links
  NeighbourLinks(int ranks, int own);

  // The number of the inbox's file in this process; kNoInbox: the system gave none.
  int inbox() const { return inbox_ ? inbox_->file() : kNoInbox; }
  // Links this rank to one that has its inbox there. False: it cannot be reached.
  bool add(int rank, pid_t process, int inbox);
  void remove(int rank) { links_[static_cast<size_t>(rank)] = nullptr; }
  // Null: there is none.
  NeighbourLink* to(int rank) const {
    return links_.empty() ? nullptr : links_[static_cast<size_t>(rank)].get();
  }

 private:
  size_t inbox_size() const { return links_.size() * ByteRing::memory_size(); }

  int own_ = 0;
  std::unique_ptr<SharedMemory> inbox_;
  std::vector<std::unique_ptr<NeighbourLink>> links_;  // by rank
};

}  // namespace outrider
