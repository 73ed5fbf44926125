// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace outrider {

enum class ChecksumKind : uint8_t {
  kSha256,
  kGitBlob,  // git's name of a file: SHA-1 of "blob SIZE", a zero byte and the contents
};

struct Checksum {
  ChecksumKind kind = ChecksumKind::kSha256;
  std::string hex;  // 64 or 40 digits in lower case

  bool operator==(const Checksum&) const = default;
};

// Whether `text` is a digest of so many bytes in lower-case hexadecimal digits.
bool is_hex_digest(std::string_view text, size_t bytes);

// The checksum of a file whose size is known, over its bytes as they come.
class ChecksumBuilder {
 public:
  ChecksumBuilder(ChecksumKind kind, int64_t file_bytes);
  ~ChecksumBuilder();

  void add(std::string_view bytes);
  // Ends the builder: no bytes may be added afterwards.
  Checksum finish();

 private:
  struct Digest;
  ChecksumKind kind_;
  std::unique_ptr<Digest> digest_;
};

}  // namespace outrider
