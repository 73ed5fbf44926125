// SPDX-License-Identifier: Apache-2.0
// Typed reading of the GGUF keys `<architecture>.<key>`, internal to formats.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/gguf/gguf_metadata.h"

namespace outrider {

class ArchitectureKeys {
 public:
  // `metadata` must outlive the object.
  ArchitectureKeys(const GgufMetadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}

  Result<std::optional<int64_t>> integer(std::string_view key) const { return metadata_.integer(full(key)); }
  Result<std::optional<double>> number(std::string_view key) const { return metadata_.number(full(key)); }
  Result<std::optional<std::string_view>> string(std::string_view key) const {
    return metadata_.string(full(key));
  }

  Result<int64_t> require_integer(std::string_view key) const {
    OUTRIDER_TRY(const auto value, integer(key));
    if (!value) return metadata_.fail(full(key) + " is missing");
    return *value;
  }

  std::string full(std::string_view key) const { return prefix_ + std::string(key); }
  Error fail(const std::string& what) const { return metadata_.fail(what); }

 private:
  const GgufMetadata& metadata_;
  std::string prefix_;
};

}  // namespace outrider
