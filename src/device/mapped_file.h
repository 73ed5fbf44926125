// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "outrider/result.h"

namespace outrider {

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

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

// Takes the pages that lie wholly within `bytes`, a part of a MappedFile, out of this process's memory;
// reading them brings them back.
void drop_mapped_pages(std::span<const std::byte> bytes);

}  // namespace outrider
