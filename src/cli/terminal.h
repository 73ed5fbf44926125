// SPDX-License-Identifier: Apache-2.0
// Results go to standard output, everything else to standard error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

void write_output(std::string_view text);
// Error: not everything could be written (full disk, closed pipe).
Status flush_output();

// Writes "outrider: <message>" to standard error.
void write_error_line(std::string_view message);
void write_error_text(std::string_view text);

bool input_is_terminal();
bool output_is_terminal();
bool error_is_terminal();

// Whether standard output is a terminal and NO_COLOR is not set.
bool output_takes_colour();

// An estimate of the remaining time of `total` equal parts: "12 min 30 s left". Empty before the first is
// done.
std::string time_left(double elapsed_ms, int64_t done, int64_t total);

// A progress bar on standard error. Shows nothing if standard error is no terminal.
class ProgressBar {
 public:
  ProgressBar(std::string label, int64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void advance();

 private:
  void draw() const;

  std::string label_;
  int64_t total_;
  int64_t done_ = 0;
  double start_ms_;
  bool visible_;
};

}  // namespace outrider
