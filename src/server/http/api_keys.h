// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// The keys that open the server. Only their digests are kept.
class ApiKeys {
 public:
  static constexpr size_t kShortest = 16;  // characters

  // A text of one key per line; empty lines and lines that begin with # are skipped. Errors name the line,
  // never what it holds.
  static Result<ApiKeys> parse(std::string_view text, std::string_view name);
  // Error: the file is missing, holds no key, or others than its owner and group may read it.
  static Result<ApiKeys> read(const std::filesystem::path& path);

  bool required() const { return !digests_.empty(); }

  // What the key's cached prompts are shared within, different for every key; nothing: an unknown key. The
  // time it takes depends on the number of keys and the length of `key` alone.
  std::optional<uint64_t> scope_of(std::string_view key) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest_of(std::string_view key);

  std::vector<Digest> digests_;  // SHA-256
};

}  // namespace outrider
