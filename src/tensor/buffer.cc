// SPDX-License-Identifier: Apache-2.0
#include "tensor/buffer.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <new>
#include <utility>

namespace outrider {
namespace {
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 64;

std::atomic<int64_t> owned = 0;

}  // namespace

int64_t Buffer::owned_bytes() { return owned; }

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes < kHugePage) {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    data_ = static_cast<std::byte*>(::operator new (rounded, std::align_val_t{kAlignment}));
    std::memset(data_, 0, rounded);
    owned += static_cast<int64_t>(bytes);
    return;
  }
  if (bytes > SIZE_MAX - kHugePage) throw std::bad_alloc();
  source_ = Source::kMapping;
  // Not rounded to huge pages: the last part, touched, would take a whole one.
  mapped_ = (bytes + kPage - 1) / kPage * kPage;
  // One huge page more than needed, so that an aligned part exists; the rest is given back.
  void* raw = mmap(nullptr, mapped_ + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  const auto address = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = (address + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned > address) munmap(raw, aligned - address);
  const uintptr_t end = aligned + mapped_;
  const uintptr_t raw_end = address + mapped_ + kHugePage;
  if (raw_end > end) munmap(reinterpret_cast<void*>(end), raw_end - end);
  data_ = reinterpret_cast<std::byte*>(aligned);
  madvise(data_, mapped_, MADV_HUGEPAGE);  // a hint: refusal costs speed only
  owned += static_cast<int64_t>(bytes);
}

Buffer Buffer::borrowed(std::span<const std::byte> bytes) {
  Buffer buffer;
  buffer.data_ = const_cast<std::byte*>(bytes.data());
  buffer.bytes_ = bytes.size();
  buffer.source_ = Source::kBorrowed;
  return buffer;
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  if (!is_borrowed()) owned -= static_cast<int64_t>(bytes_);
  switch (source_) {
    case Source::kHeap:
      ::operator delete (data_, std::align_val_t{kAlignment});
      return;
    case Source::kMapping:
      munmap(data_, mapped_);
      return;
    case Source::kBorrowed:
      return;
  }
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_(std::exchange(other.mapped_, 0)),
      source_(std::exchange(other.source_, Source::kHeap)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  std::swap(source_, other.source_);
  return *this;
}

}  // namespace outrider
