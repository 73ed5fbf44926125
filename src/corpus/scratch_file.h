// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "outrider/result.h"
#include "platform/file_descriptor.h"

namespace outrider {

// A file without a name, which holds what memory need not and ends with the object. Move only.
class ScratchFile {
 public:
  static Result<ScratchFile> create(const std::filesystem::path& folder);
  ~ScratchFile();
  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&&) = delete;

  Status append(std::string_view bytes);
  // All that was appended. Nothing is appended after it.
  Result<std::span<const std::byte>> map();

 private:
  ScratchFile(FileDescriptor file, std::filesystem::path folder)
      : file_(std::move(file)), folder_(std::move(folder)) {}

  FileDescriptor file_;
  std::filesystem::path folder_;
  size_t size_ = 0;
  std::span<const std::byte> mapped_;
};

}  // namespace outrider
