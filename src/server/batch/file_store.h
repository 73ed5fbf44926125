// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"

namespace outrider {

struct StoredFile {
  std::string id = {};  // "file-" and 32 hexadecimal digits
  std::string name;     // as its client calls it
  std::string purpose;  // "batch", "batch_output"
  uint64_t owner = 0;   // the scope of its key
  int64_t bytes = 0;
  int64_t created_ms = 0;  // Unix time
};

// OpenAI's file object.
std::string file_body(const StoredFile& file);

// The files of the Files API: a content and a description of each in one folder. A file is there once its
// description is, which is written last and taken away first. One thread uses it.
class FileStore {
 public:
  struct Limits {
    int64_t file_bytes = 200'000'000;  // of an upload, as OpenAI's
    int64_t all_bytes = 0;
    size_t files = 10'000;
  };

  // Reads the descriptions and removes contents without one, but for `kept`: files that are being written.
  static Result<FileStore> open(std::filesystem::path folder, const Limits& limits,
                                const std::vector<std::string>& kept);

  const Limits& limits() const { return limits_; }
  int64_t bytes() const { return bytes_; }
  size_t size() const { return files_.size(); }

  // Why no file of so many bytes may be added; nullopt: it may.
  std::optional<ApiError> refusal(int64_t bytes) const;
  // Adds a file with this content, completely or not at all, and returns its id.
  ApiResult<std::string> add(StoredFile file, std::string_view content);
  // Adds a file whose content lies at path_of() already, beyond all limits.
  Status adopt(StoredFile file);

  // Null: this owner has none of this id.
  const StoredFile* find(uint64_t owner, const std::string& id) const;
  // False: there is none.
  bool erase(uint64_t owner, const std::string& id);
  // The oldest one first.
  std::vector<const StoredFile*> of(uint64_t owner) const;
  std::filesystem::path path_of(const std::string& id) const { return folder_ / (id + ".jsonl"); }

 private:
  FileStore(std::filesystem::path folder, const Limits& limits)
      : folder_(std::move(folder)), limits_(limits) {}

  Status read(const std::vector<std::string>& kept);
  Status describe(const StoredFile& file) const;

  std::filesystem::path folder_;
  Limits limits_;
  std::map<std::string, StoredFile> files_;  // by id
  int64_t bytes_ = 0;
};

}  // namespace outrider
