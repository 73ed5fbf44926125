// SPDX-License-Identifier: Apache-2.0
// The parts of a request that the server parses before its JSON: the header, a body in gzip; and the file of
// API keys.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/access/api_keys.h"
#include "server/access/request_header.h"
#include "server/http/gzip_body.h"
#include "server/http/router.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto path = outrider::request_path(text)) {
    for (const char* method : {"GET", "HEAD", "POST", "DELETE"})
      static_cast<void>(outrider::match_route(method, *path));
  }
  static const outrider::AllowedHosts names("0.0.0.0", {"example.org"}, {"machine"});
  static_cast<void>(names.allow(text));
  static_cast<void>(outrider::is_json_type(text));
  static_cast<void>(outrider::is_request_id(text));
  const auto keys = outrider::ApiKeys::parse(text, "keys");
  if (keys.ok() && keys->scope_of("not a key, as it has spaces")) __builtin_trap();
  static_cast<void>(outrider::credential(text));
  constexpr size_t kMaxBytes = 1 << 16;
  const auto unpacked = outrider::unpack_gzip(text, kMaxBytes);
  if (unpacked.ok() && unpacked->size() > kMaxBytes) __builtin_trap();
  return 0;
}
