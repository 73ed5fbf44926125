// SPDX-License-Identifier: Apache-2.0
#include "server/access/fleet_key.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <array>
#include <charconv>

#include "base/check.h"

namespace outrider {

FleetKey FleetKey::make() {
  std::array<unsigned char, 16> bytes = {};
  OUTRIDER_CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
  return FleetKey(fmt::format("{:02x}", fmt::join(bytes, "")));
}

std::optional<uint64_t> FleetKey::scope_in(std::string_view header) const {
  if (key_.empty() || header.size() <= key_.size() || header[key_.size()] != ' ') return std::nullopt;
  if (CRYPTO_memcmp(header.data(), key_.data(), key_.size()) != 0) return std::nullopt;
  const std::string_view digits = header.substr(key_.size() + 1);
  uint64_t scope = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), scope);
  const bool is_whole = problem == std::errc() && end == digits.data() + digits.size();
  return is_whole ? std::optional(scope) : std::nullopt;
}

}  // namespace outrider
