// SPDX-License-Identifier: Apache-2.0
#include "cli/download_progress.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/interrupt_guard.h"
#include "cli/terminal.h"
#include "hub/remote/quant_name.h"

namespace outrider {

std::string download_line(int64_t present, int64_t bytes, int64_t received, double elapsed_ms) {
  const int64_t percent =
      bytes == 0 ? 100
                 : static_cast<int64_t>(100.0 * static_cast<double>(present) / static_cast<double>(bytes));
  std::string line = fmt::format("{} %, {} of {}", percent, size_text(present), size_text(bytes));
  if (received == 0 || elapsed_ms <= 0) return line;
  const auto rate = static_cast<int64_t>(static_cast<double>(received) * 1000.0 / elapsed_ms);
  line += fmt::format(", {}/s", size_text(rate));
  if (present == bytes) return line;
  return line + ", " + time_left(elapsed_ms, received, received + bytes - present);
}

DownloadProgress::DownloadProgress() : on_terminal_(error_is_terminal()) {}

DownloadProgress::~DownloadProgress() {
  if (on_terminal_) write_error_text("\r\x1b[K");
}

void DownloadProgress::began(std::string_view name, int64_t bytes, int64_t present) {
  name_ = name;
  bytes_ = bytes;
  present_ = first_present_ = present;
  start_ms_ = now_ms();
  show(start_ms_);
}

void DownloadProgress::advanced(int64_t present) {
  constexpr double kFrameMs = 100, kLineMs = 10'000;
  if (present < present_) first_present_ = 0;  // all of it comes again
  present_ = present;
  const double now = now_ms();
  if (present == bytes_ || now - shown_ms_ >= (on_terminal_ ? kFrameMs : kLineMs)) show(now);
}

void DownloadProgress::waits(std::string_view reason, double seconds) {
  if (on_terminal_) write_error_text("\r\x1b[K");
  write_error_line(fmt::format("{}; next attempt in {:.0f} s", reason, seconds));
}

bool DownloadProgress::is_interrupted() { return InterruptGuard::interrupted(); }

void DownloadProgress::show(double now) {
  constexpr int64_t kWidth = 24;
  shown_ms_ = now;
  const std::string line = download_line(present_, bytes_, present_ - first_present_, now - start_ms_);
  if (!on_terminal_) {
    write_error_line(fmt::format("{}: {}", name_, line));
    return;
  }
  const int64_t filled =
      bytes_ == 0 ? kWidth
                  : static_cast<int64_t>(static_cast<double>(kWidth) * static_cast<double>(present_) /
                                         static_cast<double>(bytes_));
  const std::string bar(static_cast<size_t>(filled), '#');
  write_error_text(
      fmt::format("\r\x1b[K{} [{:<{}}] {}{}", name_, bar, kWidth, line, present_ == bytes_ ? "\n" : ""));
}

}  // namespace outrider
