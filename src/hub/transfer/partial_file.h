// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "hub/transfer/checksum.h"
#include "outrider/result.h"
#include "platform/file_descriptor.h"

namespace outrider {

// The checksum of a file on disk; nullopt where it cannot be read. `is_interrupted` ends the reading early.
std::optional<Checksum> checksum_of(const std::filesystem::path& path, ChecksumKind kind,
                                    const std::function<bool()>& is_interrupted);

// The part of a file that has arrived, beside the place of the file. Its name carries the checksum of the
// whole, so that parts of different contents never meet. It remains until the file is complete.
class PartialFile {
 public:
  // Makes the folder, opens or creates the part, and removes parts of other contents of that file. Errors: no
  // access; another process has it open.
  static Result<PartialFile> open(const std::filesystem::path& file, const Checksum& checksum);

  const std::filesystem::path& path() const { return path_; }
  int64_t bytes() const { return bytes_; }

  Status append(std::string_view bytes);
  Status clear();
  // Flushes the part to disk and gives it the name of the file.
  Status finish();

 private:
  PartialFile(std::filesystem::path file, std::filesystem::path path, int fd)
      : file_(std::move(file)), path_(std::move(path)), descriptor_(std::make_unique<FileDescriptor>(fd)) {}

  std::filesystem::path file_, path_;
  std::unique_ptr<FileDescriptor> descriptor_;
  int64_t bytes_ = 0;
};

}  // namespace outrider
