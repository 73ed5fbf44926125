// SPDX-License-Identifier: Apache-2.0
// The server with a certificate: calls, streams, clients that go away, wrong handshakes, renewal.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"
#include "tests/support/test_certificate.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

class TlsServer : public testing::Test {
 protected:
  void set_certificate(ServerParts& parts) const {
    parts.options.certificate = certificate_.certificate();
    parts.options.certificate_key = certificate_.key();
    parts.limits.header_time = milliseconds(500);
    parts.limits.close_time = milliseconds(500);
  }
  std::string refusal(const std::filesystem::path& chain, const std::filesystem::path& key) const {
    ServerParts parts;
    parts.options.port = 0;
    parts.options.certificate = chain;
    parts.options.certificate_key = key;
    const auto server = Server::listen(std::move(parts));
    return server.ok() ? "" : server.error().message;
  }

  TestCertificate certificate_;
};

TEST_F(TlsServer, AnswersAsWithoutTls) {
  TestServer plain, server([this](ServerParts&parts) { set_certificate(parts); });
  ASSERT_TRUE(plain.wait_until_ready());
  ASSERT_TRUE(server.wait_until_ready());
  EXPECT_TRUE(server.server().url().starts_with("https://127.0.0.1:"));
  const std::string expected = text_of(plain.client().post("/v1/completions", long_call(false)));
  TestClient client = server.client();
  for (int round = 0; round < 3; ++round) {  // one connection
    EXPECT_EQ(text_of(client.post("/v1/completions", long_call(false))), expected);
    const TestAnswer streamed = client.post("/v1/completions", long_call(true));
    EXPECT_TRUE(streamed.is_whole);
    EXPECT_EQ(streamed_text(streamed.body), expected);
  }
  // Two requests in one piece; the second one is read while the first is answered.
  client.send(post_text("/v1/completions", long_call(false)) + post_text("/v1/completions", kShort));
  EXPECT_EQ(text_of(client.read_answer()), expected);
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST_F(TlsServer, LargeBodiesAndRefusalsArrive) {
  TestServer server([this](ServerParts& parts) {
    set_certificate(parts);
    parts.limits.body_bytes = 1 << 20;
  });
  ASSERT_TRUE(server.wait_until_ready());
  const std::string large(1 << 19, ' ');
  TestClient client = server.client();
  EXPECT_EQ(client.post("/v1/completions", kShort + large).status, 200);
  EXPECT_EQ(client.post("/v1/completions", std::string(2 << 20, ' ')).status, 413);
  EXPECT_TRUE(client.is_closed(std::chrono::seconds(5)));
}

TEST_F(TlsServer, ClientsThatGoAwayEndTheirCalls) {
  TestServer server([this](ServerParts& parts) {
    set_certificate(parts);
    parts.open = [] { return Engine::open(slow_engine(milliseconds(5))); };
  });
  ASSERT_TRUE(server.wait_until_ready());
  for (const bool streams : {false, true}) {
    for (const bool resets : {false, true}) {
      TestClient client = server.client();
      client.send(post_text("/v1/completions", long_call(streams)));
      ASSERT_TRUE(server.wait_until_busy());
      resets ? client.abort() : client.close();
      EXPECT_TRUE(server.wait_until_free());
    }
  }
  EXPECT_EQ(server.metric("outrider:disconnected_requests_total"), 4);
}

TEST_F(TlsServer, OtherHandshakesEndTheConnection) {
  TestServer server([this](ServerParts& parts) { set_certificate(parts); });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient silent(server.port()), plain(server.port()), noise(server.port());
  plain.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  noise.send(std::string(5000, '\x16'));
  for (TestClient* client : {&silent, &plain, &noise})
    EXPECT_TRUE(client->is_closed(std::chrono::seconds(5)));
  const TestCertificate other;
  EXPECT_FALSE(TestClient(server.port()).secure(other.certificate()));
  EXPECT_EQ(server.client().get("/health").status, 200);
  EXPECT_EQ(server.metric("outrider:dropped_connections_total", "tls_handshake"), 4);
}

TEST_F(TlsServer, TakesARenewedCertificate) {
  TestServer server([this](ServerParts& parts) { set_certificate(parts); });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient before = server.client();
  EXPECT_EQ(before.get("/health").status, 200);  // from here on it may be idle for longer
  certificate_.renew();
  EXPECT_FALSE(TestClient(server.port()).secure(certificate_.certificate()));
  server.server().reload();
  EXPECT_EQ(server.client().get("/health").status, 200);
  EXPECT_EQ(before.get("/health").status, 200);
  std::ofstream(certificate_.key()) << "not a key";  // the certificate stays that can be read
  server.server().reload();
  EXPECT_EQ(server.client().get("/health").status, 200);
}

TEST_F(TlsServer, SaysWhatIsWrongWithItsFiles) {
  const TestCertificate other;
  EXPECT_EQ(refusal(certificate_.certificate(), certificate_.key()), "");
  EXPECT_NE(refusal({}, certificate_.key()).find("--ssl-certfile"), std::string::npos);
  EXPECT_NE(refusal("/nonexistent", certificate_.key()).find("expected a certificate chain in PEM"),
            std::string::npos);
  EXPECT_NE(refusal(certificate_.certificate(), "/nonexistent").find("cannot read the private key"),
            std::string::npos);
  EXPECT_NE(refusal(certificate_.certificate(), other.key()).find("the certificate's private key"),
            std::string::npos);
  chmod(certificate_.key().c_str(), 0644);
  EXPECT_NE(refusal(certificate_.certificate(), certificate_.key()).find("others cannot read"),
            std::string::npos);
  // Both in one file.
  chmod(certificate_.certificate().c_str(), 0600);
  std::ifstream key(certificate_.key());
  std::ofstream(certificate_.certificate(), std::ios::app) << key.rdbuf();
  EXPECT_EQ(refusal(certificate_.certificate(), {}), "");
}

}  // namespace
}  // namespace outrider
