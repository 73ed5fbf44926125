// SPDX-License-Identifier: Apache-2.0
#include "platform/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "platform/bus_guard.h"

namespace outrider {
namespace {

Error system_error(const std::filesystem::path& path, const char* action) {
  return io_error("cannot " + std::string(action) + " " + path.string() + ": " + std::strerror(errno));
}

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

FileStamp stamp_of(const struct stat& info) {
  constexpr int64_t kClockTick = 100'000'000;  // ten times the longest step of the clock that stamps files
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t changed = nanoseconds(info.st_ctim);
  return {.bytes = info.st_size,
          .modified = nanoseconds(info.st_mtim),
          .changed = changed,
          .is_final = nanoseconds(now) - changed > kClockTick};
}

// The pages that lie wholly within `bytes`.
void advise(std::span<const std::byte> bytes, int advice) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t begin = (address + page - 1) / page * page;
  const uintptr_t end = (address + bytes.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, advice);  // a hint
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path, FileDescriptor file,
                       std::span<const std::byte> bytes)
    : path_(path), file_(std::move(file)), bytes_(bytes), guard_(GuardedRange::guard(bytes)) {}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer; regular files ignore it.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return system_error(path, "open");
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) return system_error(path, "inspect");
  if (!S_ISREG(info.st_mode)) return input_error(path.string() + " is not a regular file");
  if (info.st_size == 0) return input_error(path.string() + " is empty");
  const FileStamp stamp = stamp_of(info);
  const auto size = static_cast<size_t>(info.st_size);
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return system_error(path, "map");
  MappedFile mapped(path, std::move(file), {static_cast<const std::byte*>(address), size});
  mapped.stamp_ = stamp;
  return mapped;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  guard_->release();
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      bytes_(std::exchange(other.bytes_, {})),
      guard_(std::exchange(other.guard_, nullptr)),
      stamp_(other.stamp_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  std::swap(guard_, other.guard_);
  std::swap(stamp_, other.stamp_);
  return *this;
}

// The time of the last change of the inode is not compared: renaming and removing the file move it, too.
Status MappedFile::check() const {
  struct stat info = {};
  if (fstat(file_.get(), &info) != 0) return system_error(path_, "inspect");
  if (info.st_size != stamp_.bytes || nanoseconds(info.st_mtim) != stamp_.modified)
    return io_error(path_.string() + " was changed while it was in use");
  if (guard_->is_damaged()) return io_error(path_.string() + " could not be read");
  return {};
}

void drop_mapped_pages(std::span<const std::byte> bytes) { advise(bytes, MADV_DONTNEED); }

void populate_mapped_pages(std::span<const std::byte> bytes) {
#if defined(MADV_POPULATE_READ)  // Linux 5.14
  advise(bytes, MADV_POPULATE_READ);
#else
  advise(bytes, MADV_WILLNEED);
#endif
}

}  // namespace outrider
