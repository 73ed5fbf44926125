// SPDX-License-Identifier: Apache-2.0
#include "hub/transfer/checksum.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace outrider {

struct ChecksumBuilder::Digest {
  Digest() : context(EVP_MD_CTX_new()) { OUTRIDER_CHECK(context != nullptr); }
  ~Digest() { EVP_MD_CTX_free(context); }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  EVP_MD_CTX* context;
};

bool is_hex_digest(std::string_view text, size_t bytes) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 2 * bytes && std::ranges::all_of(text, is_digit);
}

ChecksumBuilder::ChecksumBuilder(ChecksumKind kind, int64_t file_bytes)
    : kind_(kind), digest_(std::make_unique<Digest>()) {
  const EVP_MD* algorithm = kind == ChecksumKind::kSha256 ? EVP_sha256() : EVP_sha1();
  OUTRIDER_CHECK(EVP_DigestInit_ex(digest_->context, algorithm, nullptr) == 1);
  if (kind == ChecksumKind::kGitBlob) add(fmt::format("blob {}", file_bytes) + '\0');
}

ChecksumBuilder::~ChecksumBuilder() = default;

void ChecksumBuilder::add(std::string_view bytes) {
  OUTRIDER_CHECK(EVP_DigestUpdate(digest_->context, bytes.data(), bytes.size()) == 1);
}

Checksum ChecksumBuilder::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  OUTRIDER_CHECK(EVP_DigestFinal_ex(digest_->context, digest.data(), &size) == 1);
  Checksum checksum{.kind = kind_, .hex = {}};
  for (unsigned i = 0; i < size; ++i) checksum.hex += fmt::format("{:02x}", digest[i]);
  return checksum;
}

}  // namespace outrider
