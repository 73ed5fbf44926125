// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "config/environment.h"

namespace outrider {

void write_output(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Status flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return io_error("standard output could not be written; is the disk full or the pipe closed?");
}

void write_error_line(std::string_view message) { write_error_text(fmt::format("outrider: {}\n", message)); }

void write_error_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

bool input_is_terminal() { return isatty(STDIN_FILENO) == 1; }
bool output_is_terminal() { return isatty(STDOUT_FILENO) == 1; }
bool error_is_terminal() { return isatty(STDERR_FILENO) == 1; }
bool output_takes_colour() { return output_is_terminal() && !colour_refused(); }

std::string time_left(double elapsed_ms, int64_t done, int64_t total) {
  if (done == 0) return {};
  const double left_ms = elapsed_ms * static_cast<double>(total - done) / static_cast<double>(done);
  const auto seconds = static_cast<int64_t>(left_ms / 1000.0 + 0.5);
  if (seconds >= 3600) return fmt::format("{} h {:02} min left", seconds / 3600, seconds % 3600 / 60);
  if (seconds >= 60) return fmt::format("{} min {:02} s left", seconds / 60, seconds % 60);
  return fmt::format("{} s left", seconds);
}

ProgressBar::ProgressBar(std::string label, int64_t total)
    : label_(std::move(label)), total_(total), start_ms_(now_ms()), visible_(error_is_terminal()) {
  if (visible_) draw();
}

ProgressBar::~ProgressBar() {
  if (visible_) write_error_text("\r\x1b[K");
}

void ProgressBar::advance() {
  ++done_;
  if (visible_) draw();
}

void ProgressBar::draw() const {
  constexpr int64_t kWidth = 30;
  const int64_t filled = total_ == 0 ? kWidth : kWidth * done_ / total_;
  const std::string bar(static_cast<size_t>(filled), '#');
  write_error_text(fmt::format("\r\x1b[K{} [{:<{}}] {}/{} {}", label_, bar, kWidth, done_, total_,
                               time_left(now_ms() - start_ms_, done_, total_)));
}

}  // namespace outrider
