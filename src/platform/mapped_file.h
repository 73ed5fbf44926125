// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

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

// A whole file mapped read-only and privately. Move only; the bytes stay valid, at the same address, until
// the object is destroyed. A file that another process shortens meanwhile ends this process with SIGBUS, as
// with every mapping: model files are replaced by rename, not rewritten in place.
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

 private:
  MappedFile(std::span<const std::byte> bytes, const FileStamp& stamp) : bytes_(bytes), stamp_(stamp) {}

  std::span<const std::byte> bytes_;
  FileStamp stamp_;
};

// Takes the pages that lie wholly within `bytes`, a part of a MappedFile, out of this process's memory;
// reading them brings them back.
void drop_mapped_pages(std::span<const std::byte> bytes);

// A hint to load the pages, so that reading them meets no page faults.
void populate_mapped_pages(std::span<const std::byte> bytes);

}  // namespace outrider
