// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace outrider {

// Bounds on the bytes and times of a connection. They apply before keys are checked.
struct HttpLimits {
  size_t target_bytes = 8 << 10;
  size_t header_line_bytes = 8 << 10;
  size_t header_bytes = 32 << 10;  // all headers together with the request line
  int headers = 100;
  size_t body_bytes = 8 << 20;
  size_t upload_bytes = 0;           // of a file for batches; 0: none are taken
  size_t bodies_bytes = 256 << 20;   // of all connections together
  size_t stream_bytes = 256 << 10;   // events that wait for one client
  int send_buffer_bytes = 64 << 10;  // per socket; small, so that the kernel does not hide a slow client

  std::chrono::milliseconds header_time{10'000};
  std::chrono::milliseconds body_gap{30'000};    // between two reads of a body
  std::chrono::milliseconds body_time{300'000};  // for the whole body
  std::chrono::milliseconds idle_time{60'000};   // between two requests of a connection
  std::chrono::milliseconds write_stall{30'000};
  std::chrono::milliseconds ping_interval{15'000};  // between comments of a silent stream
  std::chrono::milliseconds session_time{60'000};   // for a client that drafts to come back
  std::chrono::milliseconds open_time{10'000};      // for a client that drafts to name its session
  std::chrono::milliseconds drafting_gap{
      300'000};                                 // between two messages of its connection, in either direction
  std::chrono::milliseconds close_time{2'000};  // to send the last bytes when the server stops

  // Keeps bodies small enough for the memory that is left. A body that is prepared takes up to 48 times its
  // bytes, one that waits takes three times.
  void fit_to_memory(size_t free_bytes) {
    body_bytes = std::min(body_bytes, std::max<size_t>(free_bytes / 64, 256 << 10));
    bodies_bytes = std::min(bodies_bytes, std::max(free_bytes / 16, body_bytes));
    upload_bytes = std::min(upload_bytes, bodies_bytes);
  }
};

}  // namespace outrider
