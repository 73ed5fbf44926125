// SPDX-License-Identifier: Apache-2.0
// Typed reading of the GGUF keys `<architecture>.<key>`, internal to formats.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/gguf/gguf_metadata.h"

namespace outrider {

class ArchitectureKeys {
 public:
  // `metadata` must outlive the object.
  ArchitectureKeys(const GgufMetadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}

  Result<std::optional<int64_t>> integer(std::string_view key) const { return metadata_.integer(full(key)); }
  Result<std::optional<double>> number(std::string_view key) const { return metadata_.number(full(key)); }
  Result<std::optional<bool>> boolean(std::string_view key) const { return metadata_.boolean(full(key)); }
  Result<std::optional<std::string_view>> string(std::string_view key) const {
    return metadata_.string(full(key));
  }

  // One number for all layers, or a list with a number for each; empty: the key is absent.
  Result<std::vector<int64_t>> integers(std::string_view key) const {
    if (is_list(key)) {
      OUTRIDER_TRY(auto list, metadata_.integers(full(key)));
      return std::move(*list);
    }
    OUTRIDER_TRY(const auto number, integer(key));
    return number ? std::vector<int64_t>{*number} : std::vector<int64_t>();
  }
  bool is_list(std::string_view key) const { return metadata_.is_list(full(key)); }
  // A list with a value for each layer; empty: the key is absent.
  Result<std::vector<bool>> booleans(std::string_view key) const {
    OUTRIDER_TRY(auto list, metadata_.booleans(full(key)));
    return std::move(list).value_or(std::vector<bool>());
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
