// SPDX-License-Identifier: Apache-2.0
#include "ranks/byte_ring.h"

#include <algorithm>

namespace outrider {
namespace {

// The other side follows piece by piece, while the first ones are still in the cache.
constexpr int64_t kPiece = 8192;

}  // namespace

size_t ByteRing::memory_size() { return sizeof(Ring); }

int64_t ByteRing::write(std::span<const std::byte> data) {
  const int64_t first = ring_->written.load(std::memory_order_relaxed);
  int64_t at = first;
  const int64_t end = first + std::ssize(data);
  while (at < end) {
    const int64_t room = ring_->read.load(std::memory_order_acquire) + kCapacity - at;
    const int64_t begin = at % kCapacity;
    const int64_t count = std::min({room, end - at, kPiece, kCapacity - begin});
    if (count <= 0) break;
    std::copy_n(data.data() + (at - first), count, ring_->bytes + begin);
    at += count;
    ring_->written.store(at, std::memory_order_release);
  }
  return at - first;
}

int64_t ByteRing::read(std::span<std::byte> data) {
  const int64_t first = ring_->read.load(std::memory_order_relaxed);
  int64_t at = first;
  const int64_t end = first + std::ssize(data);
  while (at < end) {
    const int64_t there = ring_->written.load(std::memory_order_acquire) - at;
    const int64_t begin = at % kCapacity;
    const int64_t count = std::min({there, end - at, kPiece, kCapacity - begin});
    if (count <= 0) break;
    std::copy_n(ring_->bytes + begin, count, data.data() + (at - first));
    at += count;
    ring_->read.store(at, std::memory_order_release);
  }
  return at - first;
}

bool ByteRing::has_bytes() const {
  return ring_->written.load(std::memory_order_acquire) != ring_->read.load(std::memory_order_relaxed);
}

}  // namespace outrider
