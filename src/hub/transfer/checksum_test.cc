// SPDX-License-Identifier: Apache-2.0
#include "hub/transfer/checksum.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

Checksum checksum_of_text(ChecksumKind kind, std::string_view text) {
  ChecksumBuilder builder(kind, static_cast<int64_t>(text.size()));
  for (const char c : text) builder.add({&c, 1});
  return builder.finish();
}

TEST(Checksum, Sha256OfPublishedExamples) {
  EXPECT_EQ(checksum_of_text(ChecksumKind::kSha256, "").hex,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(checksum_of_text(ChecksumKind::kSha256, "abc").hex,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Checksum, GitBlobAsGitNamesIt) {  // printf 'abc' | git hash-object --stdin
  EXPECT_EQ(checksum_of_text(ChecksumKind::kGitBlob, "").hex, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(checksum_of_text(ChecksumKind::kGitBlob, "abc").hex, "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f");
}

TEST(Checksum, DigestsAreOfOneFormOnly) {
  EXPECT_TRUE(is_hex_digest("00ff", 2));
  EXPECT_FALSE(is_hex_digest("00FF", 2));
  EXPECT_FALSE(is_hex_digest("00f", 2));
  EXPECT_FALSE(is_hex_digest("00fg", 2));
}

}  // namespace
}  // namespace outrider
