// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace outrider::training {

// Shows the progress of a long run on standard error. On a terminal it is a bar with the time left. Otherwise
// it is plain lines: at once, after 2, 4, 8 and 16 seconds, then every 30 seconds.
class Progress {
 public:
  // `done` of `total` units of work were done before this process began.
  Progress(std::string label, int64_t total, int64_t done);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // There are `total` units of work in all after all.
  void expect(int64_t total) { total_ = total; }
  // `detail` is shown after the bar, for example the loss.
  void update(int64_t done, const std::string& detail);

 private:
  using Clock = std::chrono::steady_clock;

  void show(int64_t done, const std::string& left, const std::string& detail) const;

  std::string label_;
  int64_t total_;
  int64_t first_;  // work done before this process began
  bool terminal_;
  Clock::time_point start_;
  Clock::time_point last_shown_;
};

// "1 h 05 min", "12 min 30 s", "8 s".
std::string format_duration(double seconds);

}  // namespace outrider::training
