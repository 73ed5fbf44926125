// SPDX-License-Identifier: Apache-2.0
#include "server/http/gzip_body.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

// `printf %s '{"prompt":"aaaaaaaaaaaaaaaa"}' | gzip -n9`
constexpr std::string_view kPacked(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x2a\x28\xca\xcf\x2d\x28\x51\xb2\x52\x4a\x44\x03\x4a"
    "\xb5\x00\xb3\x00\xb3\x81\x1d\x00\x00\x00",
    35);

TEST(GzipBody, Unpacks) {
  const auto body = unpack_gzip(kPacked, 1000);
  ASSERT_TRUE(body.ok()) << body.error().message;
  EXPECT_EQ(*body, R"({"prompt":"aaaaaaaaaaaaaaaa"})");
}

TEST(GzipBody, RefusesLongAndDamagedOnes) {
  EXPECT_EQ(unpack_gzip(kPacked, 28).error().status, 413);
  EXPECT_TRUE(unpack_gzip(kPacked, 29).ok());
  EXPECT_EQ(unpack_gzip("{}", 1000).error().status, 400);
  for (size_t i = 0; i < kPacked.size(); ++i) {
    EXPECT_FALSE(unpack_gzip(kPacked.substr(0, i), 1000).ok()) << i;
    std::string changed(kPacked);
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    const auto body = unpack_gzip(changed, 1000);  // some header bytes mean nothing
    EXPECT_TRUE(!body.ok() || *body == R"({"prompt":"aaaaaaaaaaaaaaaa"})") << i;
  }
}

}  // namespace
}  // namespace outrider
