// SPDX-License-Identifier: Apache-2.0
// Folders of saved pages, for tests.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "outrider/token.h"

namespace outrider::kv_disk {

namespace fs = std::filesystem;

inline constexpr int kPageSize = 4;
inline constexpr int64_t kNoLimitMs = 1e9;
inline constexpr int64_t kMuch = int64_t{1} << 30;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "kv_disk_test_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      if (entry.is_regular_file()) found.push_back(entry.path());
    }
    std::ranges::sort(found);
    return found;
  }
  int64_t bytes() const {
    int64_t bytes = 0;
    for (const fs::path& file : files()) bytes += static_cast<int64_t>(fs::file_size(file));
    return bytes;
  }

 private:
  fs::path path_;
};

inline std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void overwrite(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// The files of a folder, to be put back.
class Snapshot {
 public:
  explicit Snapshot(const Folder& folder) : folder_(folder) {
    for (const fs::path& file : folder.files()) files_.emplace_back(file, contents(file));
  }
  const std::vector<std::pair<fs::path, std::string>>& files() const { return files_; }
  void put_back() const {
    for (const fs::path& file : folder_.files()) fs::remove(file);
    for (const auto& [path, bytes] : files_) overwrite(path, bytes);
  }

 private:
  const Folder& folder_;
  std::vector<std::pair<fs::path, std::string>> files_;
};

inline std::vector<TokenId> count_up(int count, TokenId first = 0) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

}  // namespace outrider::kv_disk
