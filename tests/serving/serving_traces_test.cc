// SPDX-License-Identifier: Apache-2.0
// Traces for a collector, quotas of keys, and a listening socket that another process has opened.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"
#include "tests/support/test_certificate.h"

namespace outrider {
namespace {

using TraceJson = nlohmann::json;

// A listening socket on a free port of this machine.
struct ListeningSocket {
  ListeningSocket() : fd(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd, 64), 0);
    socklen_t size = sizeof address;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  int fd;
  int port = 0;
};

// A connection of the collector, over TLS if it has a certificate.
class CollectorConnection {
 public:
  CollectorConnection(int client, SSL_CTX* context) : client_(client), tls_(nullptr, SSL_free) {
    if (context == nullptr) return;
    tls_.reset(SSL_new(context));
    SSL_set_fd(tls_.get(), client);
    is_open_ = SSL_accept(tls_.get()) == 1;
  }
  bool is_open() const { return is_open_; }
  ssize_t read(std::span<char> buffer) const {
    return tls_ == nullptr ? ::recv(client_, buffer.data(), buffer.size(), 0)
                           : SSL_read(tls_.get(), buffer.data(), static_cast<int>(buffer.size()));
  }
  void write(const std::string& text) const {
    if (tls_ == nullptr) {
      ::send(client_, text.data(), text.size(), MSG_NOSIGNAL);
    } else {
      SSL_write(tls_.get(), text.data(), static_cast<int>(text.size()));
    }
  }

 private:
  int client_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_;
  bool is_open_ = true;
};

// Takes messages of OTLP and answers each with this status line.
class Collector {
 public:
  explicit Collector(std::string status = "200 OK", const TestCertificate* certificate = nullptr)
      : context_(nullptr, SSL_CTX_free), status_(std::move(status)) {
    if (certificate != nullptr) {
      context_.reset(SSL_CTX_new(TLS_server_method()));
      SSL_CTX_use_certificate_chain_file(context_.get(), certificate->certificate().c_str());
      SSL_CTX_use_PrivateKey_file(context_.get(), certificate->key().c_str(), SSL_FILETYPE_PEM);
    }
    thread_ = std::thread([this] { run(); });
  }
  ~Collector() {
    ::shutdown(listening_.fd, SHUT_RDWR);
    thread_.join();
    ::close(listening_.fd);
  }
  std::string url(const std::string& host = "127.0.0.1") const {
    return (context_ == nullptr ? "http://" : "https://") + host + ":" + std::to_string(listening_.port);
  }
  // The head of the last message.
  std::string head() const {
    const std::lock_guard lock(mutex_);
    return head_;
  }
  int messages() const { return messages_; }
  // All spans that came, by name of the route or part.
  std::vector<TraceJson> spans() const {
    const std::lock_guard lock(mutex_);
    return spans_;
  }

 private:
  void run() {
    for (int client = 0; (client = ::accept(listening_.fd, nullptr, nullptr)) >= 0; ::close(client))
      take(client);
  }
  void take(int client) {
    const CollectorConnection connection(client, context_.get());
    if (!connection.is_open()) return;
    std::string text;
    std::array<char, 4096> buffer;
    while (true) {
      const ssize_t count = connection.read(buffer);
      if (count <= 0) break;
      text.append(buffer.data(), static_cast<size_t>(count));
      const size_t body = text.find("\r\n\r\n");
      const size_t length = text.find("Content-Length: ");
      if (body == text.npos || length == text.npos) continue;
      if (text.size() >= body + 4 + std::stoul(text.substr(length + 16))) break;
    }
    EXPECT_TRUE(text.starts_with("POST /v1/traces HTTP/1.1\r\n")) << text.substr(0, 60);
    keep(text);
    // Last: who has the answer may ask for the spans.
    connection.write("HTTP/1.1 " + status_ + "\r\nContent-Length: 2\r\n\r\n{}");
  }
  void keep(const std::string& text) {
    const TraceJson body = TraceJson::parse(text.substr(text.find("\r\n\r\n") + 4));
    const std::lock_guard lock(mutex_);
    head_ = text.substr(0, text.find("\r\n\r\n"));
    for (const TraceJson& resource : body.at("resourceSpans"))
      for (const TraceJson& scope : resource.at("scopeSpans"))
        for (const TraceJson& span : scope.at("spans")) spans_.push_back(span);
    ++messages_;
  }

  ListeningSocket listening_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;  // null: plain
  std::string status_, head_;
  std::atomic<int> messages_ = 0;
  mutable std::mutex mutex_;
  std::vector<TraceJson> spans_;
  std::thread thread_;
};

const std::string kGivenTrace(32, '7'), kCaller(16, '8');

TEST(ServedTraces, EveryRequestOfTheModelIsSent) {
  Collector collector;
  {
    TestServer server([&](ServerParts& parts) { parts.options.traces_endpoint = collector.url(); });
    ASSERT_TRUE(server.wait_until_ready());
    TestClient client(server.port());
    const TestAnswer named =
        client.post("/v1/completions", kShort, "traceparent: 00-" + kGivenTrace + "-" + kCaller + "-01\r\n");
    EXPECT_EQ(named.status, 200);
    const TestAnswer unnamed = client.post("/v1/completions", kShort);
    EXPECT_TRUE(unnamed.headers.contains("traceparent")) << "the client learns the trace that began";
    EXPECT_EQ(client.post("/v1/completions", "{}").status, 400);
    EXPECT_EQ(
        client.post("/v1/completions", kShort, "traceparent: 00-" + kGivenTrace + "-" + kCaller + "-00\r\n")
            .status,
        200);
    client.get("/health");
  }
  std::vector<TraceJson> roots;
  for (const TraceJson& span : collector.spans())
    if (span["kind"] == 2) roots.push_back(span);
  ASSERT_EQ(roots.size(), 3u) << "a caller that records nothing wants no trace";
  EXPECT_EQ(collector.spans().size(), 3u + 3 + 3);
  EXPECT_EQ(roots[0]["traceId"], kGivenTrace);
  EXPECT_EQ(roots[0]["parentSpanId"], kCaller);
  EXPECT_NE(roots[1]["traceId"], kGivenTrace);
  EXPECT_FALSE(roots[1].contains("parentSpanId"));
}

TEST(ServedTraces, ACollectorThatFailsHarmsNobody) {
  Collector collector("503 Service Unavailable");
  for (const std::string& url :
       {collector.url(), std::string("http://127.0.0.1:1"), std::string("http://no.such.host.invalid")}) {
    TestServer server([&](ServerParts& parts) { parts.options.traces_endpoint = url; });
    ASSERT_TRUE(server.wait_until_ready());
    TestClient client(server.port());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.post("/v1/completions", kShort).status, 200) << url;
  }
  EXPECT_GE(collector.messages(), 1);
}

TEST(ServedTraces, ACollectorMayHaveTls) {
  const TestCertificate certificate;
  Collector collector("200 OK", &certificate);
  {
    TestServer server([&](ServerParts& parts) {
      parts.options.traces_endpoint = collector.url();
      parts.collector = {.headers = "Authorization=Bearer%20secret,x-team=a",
                         .certificate = certificate.certificate()};
    });
    ASSERT_TRUE(server.wait_until_ready());
    EXPECT_EQ(TestClient(server.port()).post("/v1/completions", kShort).status, 200);
  }
  EXPECT_FALSE(collector.spans().empty());
  EXPECT_NE(collector.head().find("\r\nAuthorization: Bearer secret\r\n"), std::string::npos)
      << collector.head();
  EXPECT_NE(collector.head().find("\r\nx-team: a\r\n"), std::string::npos) << collector.head();
}

// Somebody else's certificate, or one of another name: no span and no header leaves the server.
TEST(ServedTraces, ACollectorThatIsNotKnownGetsNothing) {
  const TestCertificate certificate, other;
  Collector collector("200 OK", &certificate);
  const std::pair<std::string, std::filesystem::path> cases[] = {
      {collector.url(), ""},
      {collector.url(), other.certificate()},
      {collector.url("localhost"), certificate.certificate()}};
  for (const auto& [url, authority] : cases) {
    testing::internal::CaptureStderr();
    {
      TestServer server([&, url = url, authority = authority](ServerParts& parts) {
        parts.options.traces_endpoint = url;
        parts.collector.certificate = authority;
      });
      ASSERT_TRUE(server.wait_until_ready());
      EXPECT_EQ(TestClient(server.port()).post("/v1/completions", kShort).status, 200);
    }
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find("certificate verify failed"), std::string::npos) << url << log;
  }
  EXPECT_EQ(collector.messages(), 0);
}

TEST(ServedTraces, WrongSettingsAreRefusedAtTheStart) {
  const auto refusal = [](const std::string& url, const CollectorVariables& variables) {
    ServerParts parts;
    parts.options.port = 0;
    parts.options.traces_endpoint = url;
    parts.collector = variables;
    const auto server = Server::listen(std::move(parts));
    return server.ok() ? "" : server.error().message;
  };
  EXPECT_NE(refusal("collector:4317", {}).find("collector:4317"), std::string::npos);
  EXPECT_NE(refusal("http://localhost", {.headers = "secret", .certificate = {}}).find("OTLP_HEADERS"),
            std::string::npos);
  EXPECT_NE(refusal("https://localhost", {.headers = {}, .certificate = "/nonexistent"}).find("/nonexistent"),
            std::string::npos);
}

TEST(ServedQuotas, KeysHaveTheirOwn) {
  const KeyFile keys("key-of-the-first-client-0001 first\nkey-of-the-second-client-02 second\n");
  TestServer server([&](ServerParts& parts) {
    parts.options.api_key_file = keys.path();
    parts.options.requests_per_minute = 2;
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const auto status = [&](const std::string& key) {
    return client.post("/v1/completions", kShort, "Authorization: Bearer " + key + "\r\n");
  };
  EXPECT_EQ(status("key-of-the-first-client-0001").status, 200);
  EXPECT_EQ(status("key-of-the-first-client-0001").status, 200);
  const TestAnswer refused = status("key-of-the-first-client-0001");
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find("rate_limit_exceeded"), std::string::npos) << refused.body;
  EXPECT_GT(std::stoi(refused.headers.at("retry-after")), 20);
  EXPECT_EQ(status("key-of-the-second-client-02").status, 200);
}

TEST(ServedQuotas, TokensCount) {
  TestServer server([&](ServerParts& parts) { parts.options.tokens_per_minute = 10; });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  EXPECT_EQ(client.post("/v1/completions", kShort).status, 200) << "a call may leave a debt";
  EXPECT_EQ(client.post("/v1/completions", kShort).status, 429);
  EXPECT_EQ(client.get("/v1/models").status, 200) << "only calls of the model have quotas";
}

TEST(ServedSocket, AnOpenSocketIsTakenOver) {
  const ListeningSocket socket;
  // A client that connects before the server is there waits for it.
  TestClient early(socket.port);
  ASSERT_TRUE(early.send(post_text("/v1/completions", kShort)));
  {
    TestServer server([&](ServerParts& parts) { parts.listening_socket = ::dup(socket.fd); });
    EXPECT_EQ(server.port(), socket.port);
    ASSERT_TRUE(server.wait_until_ready());
  }
  const int status = early.read_answer().status;
  EXPECT_TRUE(status == 200 || status == 503) << status;
  TestClient between(socket.port);
  TestServer next([&](ServerParts& parts) { parts.listening_socket = ::dup(socket.fd); });
  ASSERT_TRUE(next.wait_until_ready());
  EXPECT_EQ(between.post("/v1/completions", kShort).status, 200) << "the socket outlives a server";
  ::close(socket.fd);
}

TEST(ServedSocket, AnythingElseIsRefused) {
  for (const int descriptor : {::open("/dev/null", 0), ::socket(AF_INET, SOCK_STREAM, 0), 9999}) {
    ServerParts parts;
    parts.listening_socket = descriptor;
    const auto server = Server::listen(std::move(parts));
    ASSERT_FALSE(server.ok());
    EXPECT_NE(server.error().message.find("LISTEN_FDS"), std::string::npos) << server.error().message;
    ::close(descriptor);
  }
}

}  // namespace
}  // namespace outrider
