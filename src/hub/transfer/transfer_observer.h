// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace outrider {

// Hears how a transfer goes on, and may end it.
class TransferObserver {
 public:
  virtual ~TransferObserver() = default;

  // A file of `bytes` begins; `present` of them are there from an earlier run.
  virtual void began(std::string_view name, int64_t bytes, int64_t present) = 0;
  // The bytes of the file that are there now; fewer than before if a part had to be thrown away.
  virtual void advanced(int64_t present) = 0;
  // A connection failed for `reason`, and the next attempt follows in `seconds`.
  virtual void waits(std::string_view reason, double seconds) = 0;
  // Asked many times a second; true ends the transfer.
  virtual bool is_interrupted() = 0;
};

}  // namespace outrider
