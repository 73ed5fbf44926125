// SPDX-License-Identifier: Apache-2.0
// A body in gzip is unpacked within its limit, or refused in one line with a 4xx status.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/http/gzip_body.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxBytes = 1 << 16;
  const auto text = outrider::unpack_gzip({reinterpret_cast<const char*>(data), size}, kMaxBytes);
  if (text.ok()) {
    if (text->size() > kMaxBytes) std::abort();
    return 0;
  }
  const outrider::ApiError& error = text.error();
  const bool is_clients = error.status >= 400 && error.status < 500;
  if (!is_clients || error.message.empty() || error.message.find('\n') != std::string::npos) std::abort();
  return 0;
}
