// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "outrider/result.h"
#include "platform/file_descriptor.h"
#include "server/batch/batch_line.h"

namespace outrider {

// A file of result lines that grows line by line. A process may be killed at any moment: the line that it was
// writing is cut off when the file is opened again. Move only.
class ResultFile {
 public:
  // The fate of bytes that are no result lines.
  enum class Damage : uint8_t {
    kRefused,  // an error; only a torn last line is cut off
    kCut,      // they are cut off, and all that follows them
  };

  // Opens the file, or makes an empty one, and tells `visit` of each line that it has.
  static Result<ResultFile> open(const std::filesystem::path& path, Damage damage,
                                 const std::function<void(const ResultLine& line)>& visit);

  // Adds a line without its end. Error: not all of it could be written; it is then taken back.
  Status append(std::string_view line);
  // Flushes all lines to disk.
  Status sync();
  int64_t bytes() const { return bytes_; }
  int64_t lines() const { return lines_; }

 private:
  ResultFile(std::filesystem::path path, FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  Status read(Damage damage, const std::function<void(const ResultLine& line)>& visit);
  Error failure(std::string_view action) const;

  std::filesystem::path path_;
  FileDescriptor file_;
  int64_t bytes_ = 0;
  int64_t lines_ = 0;
};

// Takes all lines out of the file but answers of status 200, so that a later run asks the others again.
// Error: the file holds something else than results. Nothing happens where there is no such file.
Status keep_good_results(const std::filesystem::path& path);

}  // namespace outrider
