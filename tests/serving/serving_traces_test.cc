// SPDX-License-Identifier: Apache-2.0
// Traces for a collector, quotas of keys, and a listening socket that another process has opened.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

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

// Takes messages of OTLP and answers each with this status line.
class Collector {
 public:
  explicit Collector(std::string status = "200 OK")
      : status_(std::move(status)), thread_([this] { run(); }) {}
  ~Collector() {
    ::shutdown(listening_.fd, SHUT_RDWR);
    thread_.join();
    ::close(listening_.fd);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(listening_.port); }
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
    std::string text;
    std::array<char, 4096> buffer;
    while (true) {
      const ssize_t count = ::recv(client, buffer.data(), buffer.size(), 0);
      if (count <= 0) break;
      text.append(buffer.data(), static_cast<size_t>(count));
      const size_t body = text.find("\r\n\r\n");
      const size_t length = text.find("Content-Length: ");
      if (body == text.npos || length == text.npos) continue;
      if (text.size() >= body + 4 + std::stoul(text.substr(length + 16))) break;
    }
    const std::string answer = "HTTP/1.1 " + status_ + "\r\nContent-Length: 2\r\n\r\n{}";
    ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    ++messages_;
    EXPECT_TRUE(text.starts_with("POST /v1/traces HTTP/1.1\r\n")) << text.substr(0, 60);
    const TraceJson body = TraceJson::parse(text.substr(text.find("\r\n\r\n") + 4));
    const std::lock_guard lock(mutex_);
    for (const TraceJson& resource : body.at("resourceSpans"))
      for (const TraceJson& scope : resource.at("scopeSpans"))
        for (const TraceJson& span : scope.at("spans")) spans_.push_back(span);
  }

  ListeningSocket listening_;
  std::string status_;
  std::atomic<int> messages_ = 0;
  mutable std::mutex mutex_;
  std::vector<TraceJson> spans_;
  std::thread thread_;
};

const std::string kTrace(32, '7'), kCaller(16, '8');

TEST(ServedTraces, EveryRequestOfTheModelIsSent) {
  Collector collector;
  {
    TestServer server([&](ServerParts& parts) { parts.options.traces_endpoint = collector.url(); });
    ASSERT_TRUE(server.wait_until_ready());
    TestClient client(server.port());
    const TestAnswer named =
        client.post("/v1/completions", kShort, "traceparent: 00-" + kTrace + "-" + kCaller + "-01\r\n");
    EXPECT_EQ(named.status, 200);
    const TestAnswer unnamed = client.post("/v1/completions", kShort);
    EXPECT_TRUE(unnamed.headers.contains("traceparent")) << "the client learns the trace that began";
    EXPECT_EQ(client.post("/v1/completions", "{}").status, 400);
    EXPECT_EQ(client.post("/v1/completions", kShort, "traceparent: 00-" + kTrace + "-" + kCaller + "-00\r\n")
                  .status,
              200);
    client.get("/health");
  }
  std::vector<TraceJson> roots;
  for (const TraceJson& span : collector.spans())
    if (span["kind"] == 2) roots.push_back(span);
  ASSERT_EQ(roots.size(), 3u) << "a caller that records nothing wants no trace";
  EXPECT_EQ(collector.spans().size(), 3u + 3 + 3);
  EXPECT_EQ(roots[0]["traceId"], kTrace);
  EXPECT_EQ(roots[0]["parentSpanId"], kCaller);
  EXPECT_NE(roots[1]["traceId"], kTrace);
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

TEST(ServedTraces, AWrongAddressIsRefusedAtTheStart) {
  ServerParts parts;
  parts.options.port = 0;
  parts.options.traces_endpoint = "collector:4317";
  const auto server = Server::listen(std::move(parts));
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().message.find("collector:4317"), std::string::npos) << server.error().message;
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
