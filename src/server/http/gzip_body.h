// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/api/api_error.h"

namespace outrider {

// The bytes of a body with Content-Encoding: gzip (RFC 1952). Errors: not gzip, damaged, or longer than
// `max_bytes` when unpacked.
ApiResult<std::string> unpack_gzip(std::string_view body, size_t max_bytes);

// A body as it was received. The worker unpacks it, because that takes time.
struct ReceivedBody {
  std::string bytes;
  bool is_packed = false;
  size_t max_bytes = 0;

  // The most that the text may have.
  size_t bound() const { return is_packed ? max_bytes : bytes.size(); }
  ApiResult<std::string> text() const {
    return is_packed ? unpack_gzip(bytes, max_bytes) : ApiResult<std::string>(bytes);
  }
};

}  // namespace outrider
