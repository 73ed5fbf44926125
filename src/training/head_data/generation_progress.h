// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "training/core/progress.h"

namespace outrider::training {

// Shows how many texts the target has written, and how fast.
class GenerationProgress {
 public:
  // `done` of `total` texts were written before this process began.
  GenerationProgress(std::string label, int64_t total, int64_t done)
      : shown_(std::move(label), total, done), done_(done) {}

  // More tokens were written, and so many texts were completed.
  void add(int64_t tokens, int64_t texts) {
    tokens_ += tokens;
    done_ += texts;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    char detail[64];
    std::snprintf(detail, sizeof detail, "%.0f tokens/s", static_cast<double>(tokens_) / seconds);
    shown_.update(done_, detail);
  }

 private:
  Progress shown_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int64_t done_;
  int64_t tokens_ = 0;
};

}  // namespace outrider::training
