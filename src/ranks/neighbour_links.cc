// SPDX-License-Identifier: Apache-2.0
#include "ranks/neighbour_links.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace outrider {
namespace {

ByteRing ring_of(SharedMemory& inbox, int sender) {
  return ByteRing(inbox.data() + static_cast<size_t>(sender) * ByteRing::memory_size());
}

}  // namespace

std::unique_ptr<SharedMemory> SharedMemory::make(size_t bytes) {
  std::unique_ptr<SharedMemory> memory(new SharedMemory(memfd_create("outrider-ranks", MFD_CLOEXEC), bytes));
  return memory->data_ == nullptr ? nullptr : std::move(memory);
}

std::unique_ptr<SharedMemory> SharedMemory::open(pid_t process, int file, size_t bytes) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
  std::unique_ptr<SharedMemory> memory(new SharedMemory(::open(path.c_str(), O_RDWR | O_CLOEXEC), bytes));
  return memory->data_ == nullptr ? nullptr : std::move(memory);
}

SharedMemory::SharedMemory(int file, size_t bytes) : file_(file), size_(bytes) {
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) data_ = static_cast<std::byte*>(mapped);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

void NeighbourLink::post(std::span<const std::byte> data) {
  flush();
  const int64_t written = kept_.empty() ? out_.write(data) : 0;
  kept_.insert(kept_.end(), data.begin() + written, data.end());
}

void NeighbourLink::flush() {
  if (!kept_.empty()) kept_.erase(kept_.begin(), kept_.begin() + out_.write(kept_));
}

NeighbourLinks::NeighbourLinks(int ranks, int own) : own_(own), links_(static_cast<size_t>(ranks)) {
  inbox_ = SharedMemory::make(inbox_size());
}

bool NeighbourLinks::add(int rank, pid_t process, int inbox) {
  if (!inbox_ || inbox == kNoInbox) return false;
  std::unique_ptr<SharedMemory> outbox = SharedMemory::open(process, inbox, inbox_size());
  if (!outbox) return false;
  const ByteRing out = ring_of(*outbox, own_);
  links_[static_cast<size_t>(rank)] =
      std::make_unique<NeighbourLink>(out, ring_of(*inbox_, rank), std::move(outbox));
  return true;
}

}  // namespace outrider
