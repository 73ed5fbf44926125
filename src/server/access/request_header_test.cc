// SPDX-License-Identifier: Apache-2.0
#include "server/access/request_header.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(RequestPath, DecodesAndDropsTheQuery) {
  EXPECT_EQ(request_path("/v1/models?x=%41"), "/v1/models");
  EXPECT_EQ(request_path("/v1/models/a%20b"), "/v1/models/a b");
  EXPECT_EQ(request_path("/"), "/");
}

TEST(RequestPath, RefusesWhatIsNoPath) {
  for (const char* target :
       {"", "*", "v1/models", "http://host/v1", "/a%", "/a%4", "/a%zz", "/a%00", "/a%0d%0ab", "/a#b"}) {
    EXPECT_FALSE(request_path(target)) << target;
  }
}

TEST(HostName, TakesThePortOff) {
  EXPECT_EQ(host_name("Example.org"), "example.org");
  EXPECT_EQ(host_name("example.org:8000"), "example.org");
  EXPECT_EQ(host_name("[::1]:8000"), "::1");
  EXPECT_EQ(host_name("[::1]"), "::1");
}

TEST(HostName, RefusesMalformedOnes) {
  for (const char* host :
       {"", ":80", "a:b", "a:123456", "[::1", "[::1]x", "[::1]:x", "a b", "a/b", "a@b", "a\tb"}) {
    EXPECT_FALSE(host_name(host)) << host;
  }
}

TEST(AllowedHosts, KnowThisMachineAndWhatWasAllowed) {
  const AllowedHosts names("127.0.0.1", {"My.Host"}, {"box", "box.local", "192.168.1.7"});
  for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000", "my.host:443",
                           "Box:8000", "box.local", "192.168.1.7:8000"}) {
    EXPECT_TRUE(names.allow(host)) << host;
  }
  for (const char* host : {"", "evil.example", "localhost.evil.example", "10.0.0.1", "127.0.0.1.evil.example",
                           "box.evil.example", "evil.box"}) {
    EXPECT_FALSE(names.allow(host)) << host;
  }
}

TEST(AllowedHosts, AWildcardTakesAddressesButNoNames) {
  const AllowedHosts names("0.0.0.0", {}, {});
  EXPECT_TRUE(names.allow("10.0.0.1:8000"));
  EXPECT_TRUE(names.allow("[fe80::1]"));
  EXPECT_FALSE(names.allow("evil.example"));
}

TEST(AllowedHosts, AUnixSocketTakesEveryName) {
  const AllowedHosts names("/run/outrider.sock", {}, {});
  EXPECT_TRUE(names.allow("upstream"));
  EXPECT_FALSE(names.allow("a b"));
}

TEST(SocketPath, OfHosts) {
  EXPECT_EQ(socket_path("unix:/run/a"), "/run/a");
  EXPECT_EQ(socket_path("unix:a"), "a");
  EXPECT_EQ(socket_path("/run/a"), "/run/a");
  EXPECT_EQ(socket_path("a.sock"), "a.sock");
  for (const char* host : {"", "127.0.0.1", "::1", "localhost", "example.org"})
    EXPECT_EQ(socket_path(host), "") << host;
}

TEST(Credential, OfBearerAndBasic) {
  EXPECT_EQ(credential("Bearer abc"), "abc");
  EXPECT_EQ(credential("bearer   abc "), "abc");
  EXPECT_EQ(credential("Basic dXNlcjpwYXNz"), "pass");
  EXPECT_EQ(credential("Basic dXNlcg=="), "");
  for (const char* text : {"", "Bearer", "Bearerabc", "abc", "Basic", "Basic \x01", "Digest abc"}) {
    EXPECT_EQ(credential(text), "") << text;
  }
}

TEST(ClientAddress, IsTheFirstAndAnAddress) {
  EXPECT_EQ(client_address("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(client_address("2001:db8::1, 10.0.0.1"), "2001:db8::1");
  for (const char* text :
       {"", "unknown", "10.0.0.1\"", "a b", "1111111111111111111111111111111111111111111111"})
    EXPECT_EQ(client_address(text), "") << text;
}

TEST(QueryValue, IsDecoded) {
  EXPECT_EQ(query_value("/props?model=a%2Fb&x=1", "model"), "a/b");
  EXPECT_EQ(query_value("/props?x=1&model=b", "model"), "b");
  for (const char* target :
       {"/props", "/props?", "/props?models=a", "/props?model", "/props?model=%zz", "/props?&&"})
    EXPECT_EQ(query_value(target, "model"), "") << target;
}

TEST(RequestId, OfHarmlessCharacters) {
  EXPECT_TRUE(is_request_id("a-B_1.2"));
  EXPECT_FALSE(is_request_id(""));
  EXPECT_FALSE(is_request_id("a b"));
  EXPECT_FALSE(is_request_id("a\r\nb"));
  EXPECT_FALSE(is_request_id(std::string(129, 'a')));
}

TEST(JsonType, WithAndWithoutParameters) {
  EXPECT_TRUE(is_json_type("application/json"));
  EXPECT_TRUE(is_json_type("Application/JSON ; charset=utf-8"));
  EXPECT_FALSE(is_json_type("text/plain"));
  EXPECT_FALSE(is_json_type("application/jsonp"));
  EXPECT_FALSE(is_json_type(""));
}

}  // namespace
}  // namespace outrider
