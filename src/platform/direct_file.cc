// SPDX-License-Identifier: Apache-2.0
#include "platform/direct_file.h"

#include <fcntl.h>
#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "platform/file_descriptor.h"

namespace outrider {
namespace {

constexpr size_t kChunk = size_t{1} << 20;  // disks reach their rate with some such reads in flight
constexpr unsigned kQueueDepth = 128;

// Reads all chunks through io_uring. Chunks beyond its queue are submitted when something else ends.
class UringFile final : public DirectFile {
 public:
  UringFile(std::filesystem::path path, int file) : DirectFile(std::move(path)), file_(file) {}
  ~UringFile() override {
    if (!is_open_) return;
    waiting_.clear();
    while (in_flight_ > 0) reap();
    io_uring_queue_exit(&ring_);
  }
  // The errno of the system that does not permit it, or 0.
  int open_queue() {
    const int result = io_uring_queue_init(kQueueDepth, &ring_, 0);
    is_open_ = result == 0;
    return -result;
  }

  void pin(std::span<const std::span<std::byte>> buffers) override {
    std::vector<iovec> vectors;
    for (const std::span<std::byte> buffer : buffers) vectors.push_back({buffer.data(), buffer.size()});
    if (const int result = io_uring_register_buffers(&ring_, vectors.data(), unsigned(vectors.size()));
        result != 0) {
      log_info(std::string("buffers of reads are not pinned: ") + std::strerror(-result) +
               "; a higher limit of locked memory (ulimit -l) would allow it");
      return;
    }
    pinned_.assign(buffers.begin(), buffers.end());
  }

 private:
  void start(FileRead& read) override {
    for (FileRead::Chunk& chunk : read.chunks) waiting_.push_back(&chunk);
    submit();
  }

  void wait(FileRead& read) override {
    while (read.in_flight()) reap();
  }

  void submit() {
    bool is_new = false;
    while (!waiting_.empty() && in_flight_ < kQueueDepth) {
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);
      if (entry == nullptr) break;
      FileRead::Chunk& chunk = *waiting_.front();
      waiting_.pop_front();
      prepare(*entry, chunk);
      io_uring_sqe_set_data(entry, &chunk);
      ++in_flight_;
      is_new = true;
    }
    if (is_new) io_uring_submit(&ring_);
  }

  void prepare(io_uring_sqe& entry, const FileRead::Chunk& chunk) const {
    std::byte* const to = chunk.read->into.data() + chunk.begin;
    const auto size = static_cast<unsigned>(chunk.size);
    const uint64_t offset = chunk.read->offset + chunk.begin;
    const auto pinned = std::ranges::find_if(pinned_, [&](const std::span<std::byte>& buffer) {
      return to >= buffer.data() && to + size <= buffer.data() + buffer.size();
    });
    if (pinned == pinned_.end()) return io_uring_prep_read(&entry, file_.get(), to, size, offset);
    io_uring_prep_read_fixed(&entry, file_.get(), to, size, offset, int(pinned - pinned_.begin()));
  }

  // Waits until one chunk has ended and takes all that have.
  void reap() {
    io_uring_cqe* done = nullptr;
    const int result = io_uring_wait_cqe(&ring_, &done);
    if (result == -EINTR) return;
    OUTRIDER_CHECK(result == 0);
    do {
      auto& chunk = *static_cast<FileRead::Chunk*>(io_uring_cqe_get_data(done));
      const int bytes = done->res;
      io_uring_cqe_seen(&ring_, done);
      --in_flight_;
      end(chunk, bytes);
    } while (io_uring_peek_cqe(&ring_, &done) == 0);
    submit();
  }

  // A read may end early; its rest is read next.
  void end(FileRead::Chunk& chunk, int bytes) {
    if (bytes == -EINTR || bytes == -EAGAIN) return waiting_.push_front(&chunk);
    if (bytes > 0 && static_cast<size_t>(bytes) < chunk.size) {
      chunk.begin += static_cast<size_t>(bytes);
      chunk.size -= static_cast<size_t>(bytes);
      return waiting_.push_front(&chunk);
    }
    if (bytes <= 0 && chunk.read->error == 0) chunk.read->error = bytes == 0 ? FileRead::kEndOfFile : -bytes;
    --chunk.read->outstanding;
  }

  FileDescriptor file_;
  io_uring ring_ = {};
  bool is_open_ = false;
  unsigned in_flight_ = 0;
  std::deque<FileRead::Chunk*> waiting_;  // not yet submitted
  std::vector<std::span<std::byte>> pinned_;
};

// Reads one chunk after the other on another thread.
class ThreadFile final : public DirectFile {
 public:
  ThreadFile(std::filesystem::path path, int file)
      : DirectFile(std::move(path)), file_(file), thread_([this] { run(); }) {}
  ~ThreadFile() override {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    work_.notify_one();
    thread_.join();
  }

  void pin(std::span<const std::span<std::byte>> /*buffers*/) override {}

 private:
  void start(FileRead& read) override {
    {
      const std::lock_guard lock(mutex_);
      for (FileRead::Chunk& chunk : read.chunks) waiting_.push_back(&chunk);
    }
    work_.notify_one();
  }

  void wait(FileRead& read) override {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return !read.in_flight(); });
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [&] { return stops_ || !waiting_.empty(); });
      if (stops_) return;
      const FileRead::Chunk& chunk = *waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      const int error = read_whole(chunk);
      lock.lock();
      if (chunk.read->error == 0) chunk.read->error = error;
      if (--chunk.read->outstanding == 0) done_.notify_all();
    }
  }

  int read_whole(const FileRead::Chunk& chunk) const {
    size_t read = 0;
    while (read < chunk.size) {
      const size_t at = chunk.begin + read;
      const ssize_t bytes = pread(file_.get(), chunk.read->into.data() + at, chunk.size - read,
                                  static_cast<off_t>(chunk.read->offset + at));
      if (bytes == 0) return FileRead::kEndOfFile;
      if (bytes < 0 && errno != EINTR) return errno;
      if (bytes > 0) read += static_cast<size_t>(bytes);
    }
    return 0;
  }

  FileDescriptor file_;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<FileRead::Chunk*> waiting_;
  bool stops_ = false;
  std::thread thread_;
};

// A descriptor for direct reads, or for reads through the page cache; -1: errno says why there is none.
int open_for_reads(const std::filesystem::path& path) {
  const int direct = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (direct >= 0 || errno != EINVAL) return direct;
  log_warning("the file system of " + path.string() +
              " has no direct reads; its pages take memory of the system's page cache");
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

}  // namespace

Result<std::unique_ptr<DirectFile>> DirectFile::open(const std::filesystem::path& path, Method method) {
  const int file = open_for_reads(path);
  if (file < 0) return io_error("cannot open " + path.string() + ": " + std::strerror(errno));
  if (method == Method::kThreads)
    return std::unique_ptr<DirectFile>(std::make_unique<ThreadFile>(path, file));
  auto uring = std::make_unique<UringFile>(path, file);
  const int error = uring->open_queue();
  if (error == 0) return std::unique_ptr<DirectFile>(std::move(uring));
  const std::string reason = std::string("io_uring is not permitted here: ") + std::strerror(error);
  if (method == Method::kUring) return io_error(reason);
  log_info(reason + "; a thread reads " + path.string());
  return open(path, Method::kThreads);
}

void DirectFile::begin(FileRead& read, size_t offset, std::span<std::byte> into) {
  OUTRIDER_CHECK(!read.in_flight());
  OUTRIDER_CHECK(offset % kBlock == 0 && into.size() % kBlock == 0 &&
                 reinterpret_cast<uintptr_t>(into.data()) % kBlock == 0);
  read.offset = offset;
  read.into = into;
  read.error = 0;
  read.chunks.clear();
  for (size_t begin = 0; begin < into.size(); begin += kChunk)
    read.chunks.push_back({&read, begin, std::min(kChunk, into.size() - begin)});
  read.outstanding = read.chunks.size();
  start(read);
}

Status DirectFile::finish(FileRead& read) {
  wait(read);
  if (read.error == 0) return {};
  const std::string reason =
      read.error == FileRead::kEndOfFile ? "the file ends too early" : std::strerror(read.error);
  return io_error("cannot read " + std::to_string(read.into.size()) + " bytes at " +
                  std::to_string(read.offset) + " of " + path_.string() + ": " + reason);
}

}  // namespace outrider
