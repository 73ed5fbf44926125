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
  static constexpr size_t kMinLength = 16;  // characters; a shorter key can be guessed

  // Reads one key per line, with a name after it or without, skipping empty lines and lines that begin with
  // #. Errors name the line, never its content.
  static Result<ApiKeys> parse(std::string_view text, std::string_view name, size_t min_length = kMinLength);
  // Errors: the file is missing, holds no key, or is readable by others than its owner and group.
  static Result<ApiKeys> read(const std::filesystem::path& path);
  // Keys of a file and keys given one by one, which may be short; without either there are none.
  static Result<ApiKeys> collect(const std::filesystem::path& file, std::span<const std::string> given);

  bool required() const { return !digests_.empty(); }
  // Whether a key can be guessed, so that only programs of this machine may reach the server.
  bool has_short() const { return has_short_; }

  // The scope of the prefix cache for requests with this key, different for every key; nullopt: unknown key.
  // The time it takes depends only on the number of keys and the length of `key`.
  std::optional<uint64_t> scope_of(std::string_view key) const;
  // The name of a known key in the log and in metrics; "key-2" for the second key if it has none.
  std::string name_of(std::string_view key) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest_of(std::string_view key);

  // The place of the digest among `digests_`; digests_.size(): there is none.
  size_t find(const Digest& digest) const;

  std::vector<Digest> digests_;     // SHA-256
  std::vector<std::string> names_;  // one for each; empty: none
  bool has_short_ = false;
};

}  // namespace outrider
