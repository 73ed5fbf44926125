// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hub/transfer/transfer_observer.h"

namespace outrider {

// Shows transfers on standard error: on a terminal as a bar with size, rate and remaining time, else as a
// plain line at most every ten seconds. SIGINT and SIGTERM interrupt them while an InterruptGuard lives.
class DownloadProgress final : public TransferObserver {
 public:
  DownloadProgress();
  ~DownloadProgress() override;

  void began(std::string_view name, int64_t bytes, int64_t present) override;
  void advanced(int64_t present) override;
  void waits(std::string_view reason, double seconds) override;
  bool is_interrupted() override;

 private:
  void show(double now);

  bool on_terminal_;
  std::string name_;
  int64_t bytes_ = 0;
  int64_t present_ = 0;
  int64_t first_present_ = 0;  // when the file began, for the rate
  double start_ms_ = 0;
  double shown_ms_ = 0;
};

// "45 %, 44.3 of 98.4 MB, 12.1 MB/s, 4 s left"; without rate and time before there are any. `received` bytes
// took `elapsed_ms`.
std::string download_line(int64_t present, int64_t bytes, int64_t received, double elapsed_ms);

}  // namespace outrider
