// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "platform/file_descriptor.h"

#include "outrider/result.h"

namespace outrider {

// Identifies the contents of a file at one time. Every write to a local file moves `changed`, which no
// program can set back.
struct FileStamp {
  int64_t bytes = 0;
  int64_t modified = 0;  // ns since 1970
  int64_t changed = 0;
  bool is_final = true;  // false: changed so recently that another write could leave the same stamp
};

class GuardedRange;

// A whole file mapped read-only and privately. Move only; the bytes stay valid, at the same address, until
// the object is destroyed. Where another process shortens the file, or its disk fails, zeros are read instead
// (platform/bus_guard.h), and check() says so.
class MappedFile {
 public:
  // Errors: missing or unreadable file, a directory or device, an empty file.
  static Result<MappedFile> open(const std::filesystem::path& path);

  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }
  // The stamp was taken just before the mapping.
  const FileStamp& stamp() const { return stamp_; }
  // Errors: what was read since the file was opened may not be what it held then, because it was shortened or
  // rewritten, or could not be read. Takes about a microsecond.
  Status check() const;

 private:
  MappedFile(const std::filesystem::path& path, FileDescriptor file, std::span<const std::byte> bytes);

  std::filesystem::path path_;
  FileDescriptor file_;
  std::span<const std::byte> bytes_;
  GuardedRange* guard_ = nullptr;  // of `bytes_`
  FileStamp stamp_;
};

// Takes the pages that lie wholly within `bytes`, a part of a MappedFile, out of this process's memory;
// reading them brings them back.
void drop_mapped_pages(std::span<const std::byte> bytes);

// A hint to load the pages, so that reading them meets no page faults.
void populate_mapped_pages(std::span<const std::byte> bytes);

}  // namespace outrider
