// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <utility>

#include "outrider/result.h"

namespace outrider {

// A directory with the weights of a draft head and a changed configuration, removed with this object.
class HeadTrial {
 public:
  // The head in `directory` with another base of RoPE. Error: files that cannot be read or written.
  static Result<HeadTrial> with_rope_theta(const std::filesystem::path& directory, double theta);
  ~HeadTrial();
  HeadTrial(HeadTrial&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  HeadTrial& operator=(HeadTrial&&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit HeadTrial(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace outrider
