// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// The keys that clients may use. Only their digests are kept.
class ApiKeys {
 public:
  static constexpr size_t kMinLength = 16;  // characters

  // Reads one key per line, skipping empty lines and lines that begin with #. Errors name the line, never its
  // content.
  static Result<ApiKeys> parse(std::string_view text, std::string_view name);
  // Errors: the file is missing, holds no key, or is readable by others than its owner and group.
  static Result<ApiKeys> read(const std::filesystem::path& path);
  // Keys of a file and keys given one by one; without either there are none.
  static Result<ApiKeys> collect(const std::filesystem::path& file, std::span<const std::string> given);

  bool required() const { return !digests_.empty(); }

  // The scope of the prefix cache for requests with this key, different for every key; nullopt: unknown key.
  // The time it takes depends only on the number of keys and the length of `key`.
  std::optional<uint64_t> scope_of(std::string_view key) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest_of(std::string_view key);

  std::vector<Digest> digests_;  // SHA-256
};

}  // namespace outrider
