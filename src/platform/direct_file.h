// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// A part of a file on its way into memory. It must stay in place from DirectFile::begin() to finish().
struct FileRead {
  // Bytes of a read that the system reads at once.
  struct Chunk {
    FileRead* read = nullptr;
    size_t begin = 0;  // within `into`
    size_t size = 0;
  };

  size_t offset = 0;  // in the file
  std::span<std::byte> into;
  std::vector<Chunk> chunks;
  size_t outstanding = 0;  // chunks that are not yet read
  int error = 0;           // errno of the first chunk that failed; kEndOfFile: the file ends before
  static constexpr int kEndOfFile = -1;

  bool in_flight() const { return outstanding > 0; }
};

// Reads large parts of a file around the page cache, many at a time, while the caller computes. Offsets,
// sizes and addresses are multiples of kBlock. One thread at a time may use it.
class DirectFile {
 public:
  static constexpr size_t kBlock = 4096;

  enum class Method : uint8_t {
    kBest,     // io_uring, or a thread where the system does not permit it, which the log reports
    kUring,    // error where the system does not permit it
    kThreads,  // a thread that calls pread()
  };
  // Errors: missing or unreadable file. A file system without direct reads is read through the page cache,
  // which the log reports.
  static Result<std::unique_ptr<DirectFile>> open(const std::filesystem::path& path,
                                                  Method method = Method::kBest);
  virtual ~DirectFile() = default;  // waits for reads in flight

  // Pins memory that reads go to, so that the system need not do it for every read. Without the right to lock
  // so much memory, reads pin it each time.
  virtual void pin(std::span<const std::span<std::byte>> buffers) = 0;
  // Begins to read `into.size()` bytes at `offset`; `read` is not in flight.
  void begin(FileRead& read, size_t offset, std::span<std::byte> into);
  // Waits until the read has ended. Errors: errors of the file system; the file ends before.
  Status finish(FileRead& read);

  const std::filesystem::path& path() const { return path_; }

 protected:
  explicit DirectFile(std::filesystem::path path) : path_(std::move(path)) {}
  virtual void start(FileRead& read) = 0;
  virtual void wait(FileRead& read) = 0;

 private:
  std::filesystem::path path_;
};

}  // namespace outrider
