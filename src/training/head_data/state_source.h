// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "outrider/result.h"
#include "training/head_data/frozen_target.h"
#include "training/head_data/head_data.h"

namespace outrider::training {

// The target's states of windows. They are computed, or read from a folder that keeps the states of earlier
// epochs and runs, one file per window, until it is full. A file is named after the window's text, so that
// runs with more text or other batches find it. States that were read equal the computed ones bit for bit.
class StateSource {
 public:
  struct Options {
    std::filesystem::path folder;  // empty: states are always computed
    int64_t max_bytes = 0;
  };
  // Error: the folder holds states of another target, or of other features.
  static Result<StateSource> open(FrozenTarget& target, const Options& options);

  Result<std::vector<TargetStates>> states(std::span<const Window> windows);

  int64_t bytes_kept() const { return bytes_; }

 private:
  StateSource(FrozenTarget& target, const Options& options) : target_(&target), options_(options) {}
  bool is_kept(const Window& window) const {
    return !options_.folder.empty() && window.id != Window::kNewText;
  }
  std::filesystem::path path_of(const Window& window) const;
  Result<TargetStates> read(const Window& window) const;
  void keep(const Window& window, const TargetStates& states);

  FrozenTarget* target_;
  Options options_;
  int64_t bytes_ = 0;
  bool is_full_ = false;
};

}  // namespace outrider::training
