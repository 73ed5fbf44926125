// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/trace_collector.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(TraceCollector, Addresses) {
  const auto text = [](std::string_view url) {
    const auto address = CollectorAddress::parse(url);
    return address.ok() ? address->url() : address.error().message;
  };
  EXPECT_EQ(text("http://localhost:4318"), "http://localhost:4318/v1/traces");
  EXPECT_EQ(text("http://collector"), "http://collector:4318/v1/traces");
  EXPECT_EQ(text("http://10.0.0.2:80/otlp/v1/traces"), "http://10.0.0.2:80/otlp/v1/traces");
  EXPECT_EQ(text("http://[::1]:4318/"), "http://[::1]:4318/v1/traces");
  EXPECT_EQ(text("https://otlp.example.org"), "https://otlp.example.org:443/v1/traces");
  EXPECT_EQ(text("https://otlp.example.org:4318/x"), "https://otlp.example.org:4318/x");
  for (const char* wrong : {"", "localhost:4318", "ftp://localhost", "http://", "https://", "http://:4318",
                            "http://a:b", "http://a:123456"})
    EXPECT_NE(text(wrong).find("expected the address of a collector"), std::string::npos) << wrong;
}

TEST(TraceCollector, HeadersOfTheEnvironment) {
  const auto headers = read_collector_headers("Authorization=Bearer%20se=cret, x-team = a%2Cb ,,empty=");
  ASSERT_TRUE(headers.ok());
  EXPECT_EQ(*headers,
            (CollectorHeaders{{"Authorization", "Bearer se=cret"}, {"x-team", "a,b"}, {"empty", ""}}));
  EXPECT_TRUE(read_collector_headers("")->empty());
  for (const char* wrong :
       {"secret", "a=1,secret", "=secret", "a b=secret", "a=secret%0d%0ab", "a=secret%"}) {
    const auto refused = read_collector_headers(wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_NE(refused.error().message.find("OTEL_EXPORTER_OTLP_HEADERS"), std::string::npos);
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos) << "values stay out of messages";
  }
}

}  // namespace
}  // namespace outrider
