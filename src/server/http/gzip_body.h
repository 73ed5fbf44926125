// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/api/api_error.h"

namespace outrider {

// The bytes of a body with Content-Encoding: gzip (RFC 1952). Errors: not gzip, damaged, or longer than
// `max_bytes` when unpacked.
ApiResult<std::string> unpack_gzip(std::string_view body, size_t max_bytes);

// Adds the bytes of one body to the total of all requests, from its first byte until it has been prepared. It
// may end on another thread.
class BodyAccount {
 public:
  BodyAccount(std::atomic<size_t>* total, size_t limit) : total_(total), limit_(limit) {}
  ~BodyAccount() { *total_ -= bytes_; }
  BodyAccount(const BodyAccount&) = delete;
  BodyAccount& operator=(const BodyAccount&) = delete;

  // Sets the bytes of this body. False: the total is above its limit.
  bool set(size_t bytes) {
    *total_ += bytes - bytes_;
    bytes_ = bytes;
    return *total_ <= limit_;
  }

 private:
  std::atomic<size_t>* total_;
  size_t limit_;
  size_t bytes_ = 0;
};

// A body as it was received. The worker unpacks it, because that takes time.
struct ReceivedBody {
  std::string bytes;
  bool is_packed = false;
  size_t max_bytes = 0;
  std::shared_ptr<BodyAccount> account;

  // The most that the text may have.
  size_t bound() const { return is_packed ? max_bytes : bytes.size(); }
  ApiResult<std::string> take_text() {
    return is_packed ? unpack_gzip(bytes, max_bytes) : ApiResult<std::string>(std::move(bytes));
  }
};

}  // namespace outrider
