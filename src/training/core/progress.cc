// SPDX-License-Identifier: Apache-2.0
#include "training/core/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace outrider::training {
namespace {

constexpr int kBarWidth = 30;
constexpr std::chrono::milliseconds kTerminalInterval{100};
constexpr std::chrono::seconds kFirstLineInterval{2};
constexpr std::chrono::seconds kLineInterval{30};

}  // namespace

std::string format_duration(double seconds) {
  const auto total = static_cast<long long>(seconds + 0.5);
  char text[48];
  if (total >= 3600) {
    std::snprintf(text, sizeof text, "%lld h %02lld min", total / 3600, total % 3600 / 60);
  } else if (total >= 60) {
    std::snprintf(text, sizeof text, "%lld min %02lld s", total / 60, total % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld s", total);
  }
  return text;
}

Progress::Progress(std::string label, int64_t total, int64_t done)
    : label_(std::move(label)),
      total_(total),
      first_(done),
      terminal_(::isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      last_shown_(start_) {
  show(done, {}, {});
}

Progress::~Progress() {
  if (terminal_) std::fputc('\n', stderr);
}

void Progress::update(int64_t done, const std::string& detail) {
  const Clock::time_point now = Clock::now();
  const Clock::duration of_lines =
      std::clamp<Clock::duration>(last_shown_ - start_, kFirstLineInterval, kLineInterval);
  const Clock::duration interval = terminal_ ? Clock::duration(kTerminalInterval) : of_lines;
  if (done < total_ && now - last_shown_ < interval) return;
  last_shown_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left =
      done > first_ ? elapsed * static_cast<double>(total_ - done) / static_cast<double>(done - first_) : 0.0;
  show(done, done > first_ ? format_duration(left) + " left  " : std::string(), detail);
}

void Progress::show(int64_t done, const std::string& left, const std::string& detail) const {
  const double share = total_ > 0 ? static_cast<double>(done) / static_cast<double>(total_) : 1.0;
  if (terminal_) {
    const auto filled = static_cast<size_t>(share * kBarWidth);
    const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
    std::fprintf(stderr, "\r\033[K%s [%s] %3.0f%%  %s%s", label_.c_str(), bar.c_str(), share * 100.0,
                 left.c_str(), detail.c_str());
  } else {
    std::fprintf(stderr, "%s %lld/%lld  %s%s\n", label_.c_str(), static_cast<long long>(done),
                 static_cast<long long>(total_), left.c_str(), detail.c_str());
  }
  std::fflush(stderr);
}

}  // namespace outrider::training
