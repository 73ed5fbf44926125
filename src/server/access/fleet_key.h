// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace outrider {

// A secret of the server of a fleet and its engines. With it the server sends lines of batches, which come in
// the background and belong to the key of a client.
class FleetKey {
 public:
  static constexpr std::string_view kHeader = "X-Outrider-Background";

  FleetKey() = default;    // of an engine without a fleet: it opens nothing
  static FleetKey make();  // nobody can guess it
  explicit FleetKey(std::string key) : key_(std::move(key)) {}

  const std::string& text() const { return key_; }
  // The value of the header for requests of a client's key.
  std::string header(uint64_t scope) const { return key_ + " " + std::to_string(scope); }
  // The scope in a header; nullopt: another key made it. The time it takes does not tell the key.
  std::optional<uint64_t> scope_in(std::string_view header) const;

 private:
  std::string key_;
};

}  // namespace outrider
