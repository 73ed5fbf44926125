// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace outrider {

// Bytes on their way from one process to another, in their order, in memory that both have mapped. One thread
// writes and one reads; neither waits.
class ByteRing {
 public:
  // Bytes of memory that a ring needs: zeros, when the first of both begins.
  static size_t memory_size();

  // `memory` is aligned as pages are, and outlives the ring.
  explicit ByteRing(std::byte* memory) : ring_(reinterpret_cast<Ring*>(memory)) {}

  // Writes as many of the bytes as there is room for, and returns their number.
  int64_t write(std::span<const std::byte> data);
  // Reads as many bytes as are there, data.size() of them at most, and returns their number.
  int64_t read(std::span<std::byte> data);
  // Whether there is something to read; asked by the side that reads.
  bool has_bytes() const;

 private:
  static constexpr int64_t kCapacity = int64_t{1} << 20;
  static constexpr size_t kLine = 64;  // bytes; what one side writes shares no cache line with the other's
  struct Ring {
    alignas(kLine) std::atomic<int64_t> written;  // bytes since the beginning
    alignas(kLine) std::atomic<int64_t> read;
    alignas(kLine) std::byte bytes[kCapacity];
  };
  static_assert(std::atomic<int64_t>::is_always_lock_free);

  Ring* ring_;
};

}  // namespace outrider
