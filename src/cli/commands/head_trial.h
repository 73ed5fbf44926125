// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "draft_heads/head_file.h"
#include "outrider/result.h"

namespace outrider {

// A change of a head's weights that undoes one of the usual mistakes of people who make its files.
struct HeadRepair {
  std::string what;  // "the norms input_layernorm and hidden_norm exchanged"
  std::vector<std::pair<std::string, std::string>> exchanged = {};  // tensors of the same size
  std::string inputs = {};                                          // a matrix of several inputs side by side
  std::vector<size_t> order = {};  // block order[i] of its columns is input i
};

// The repairs that a head's tensors allow: other orders of its inputs, which are as wide as the target's
// hidden state, and norms of one place exchanged, in all layers together.
std::vector<HeadRepair> usual_repairs(const HeadFile& head, int64_t target_hidden);

// A directory with the files of a draft head, some of them changed, removed with this object.
class HeadTrial {
 public:
  // The head in `directory` with another base of RoPE. Error: files that cannot be read or written.
  static Result<HeadTrial> with_rope_theta(const std::filesystem::path& directory, double theta);
  // The head in `directory`, with weights in one file of safetensors, after a repair. Errors: other files;
  // files that cannot be read or written.
  static Result<HeadTrial> with_repair(const std::filesystem::path& directory, const HeadRepair& repair);
  ~HeadTrial();
  HeadTrial(HeadTrial&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  HeadTrial& operator=(HeadTrial&&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit HeadTrial(std::filesystem::path path) : path_(std::move(path)) {}
  static Result<HeadTrial> make();

  std::filesystem::path path_;
};

}  // namespace outrider
