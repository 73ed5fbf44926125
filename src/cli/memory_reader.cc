// SPDX-License-Identifier: Apache-2.0
#include "cli/memory_reader.h"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace outrider {
namespace {

constexpr int64_t kLine = 64;            // bytes of a cache line
constexpr int64_t kFootprint = 1 << 30;  // bytes, more than any cache holds
constexpr int64_t kAhead =
    1024;  // prefetch distance in bytes; with a larger one only the hardware's prefetch remains

using Line = uint64_t __attribute__((vector_size(kLine)));

uint64_t read_lines(const std::byte* begin, const std::byte* end) {
  Line sums[4] = {};
  for (const std::byte* at = begin; at + 4 * kLine <= end; at += 4 * kLine) {
    for (int i = 0; i < 4; ++i) {
      __builtin_prefetch(at + i * kLine + kAhead);
      sums[i] ^= *reinterpret_cast<const Line*>(at + i * kLine);
    }
  }
  const Line sum = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  return sum[0];
}

}  // namespace

MemoryReader::MemoryReader(int64_t bytes)
    : bytes_(bytes), buffer_(static_cast<size_t>(std::clamp(bytes, 4 * kLine, kFootprint))) {
  auto words = buffer_.as<uint64_t>();
  for (size_t i = 0; i < words.size(); ++i) words[i] = i;
}

double MemoryReader::time(ThreadPool& pool) {
  const auto size = static_cast<int64_t>(buffer_.size());
  std::atomic<uint64_t> sink{0};
  const auto start = std::chrono::steady_clock::now();
  for (int64_t left = bytes_; left > 0; left -= size) {
    pool.run([&](Worker worker) {
      const Range share = share_of(worker, std::min(left, size), 4 * kLine);
      sink ^= read_lines(buffer_.data() + share.begin, buffer_.data() + share.end);
    });
  }
  const auto stop = std::chrono::steady_clock::now();
  sink_ ^= sink;
  return std::chrono::duration<double, std::milli>(stop - start).count();
}

}  // namespace outrider
