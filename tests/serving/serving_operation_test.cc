// SPDX-License-Identifier: Apache-2.0
// The server from its start to its end: loading, a full queue, draining, notifications of systemd.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

// An engine that opens when the test allows it.
class Gate {
 public:
  void open() { is_open_ = true; }
  void wait() const {
    while (!is_open_) std::this_thread::sleep_for(milliseconds(1));
  }

 private:
  std::atomic<bool> is_open_ = false;
};

TEST(Server, SaysThatItIsLoading) {
  Gate gate;
  const auto stage = std::make_shared<std::atomic<LoadStage>>(LoadStage::kFiles);
  TestServer server([&](ServerParts& parts) {
    parts.load_stage = stage;
    parts.open = [&gate] {
      gate.wait();
      return Engine::open(tiny_engine());
    };
  });
  TestClient client(server.port());
  for (const auto& [now, name, fraction] :
       {std::tuple(LoadStage::kFiles, "files", 0.0), std::tuple(LoadStage::kCosts, "costs", 0.75)}) {
    stage->store(now);
    const TestAnswer health = client.get("/health");
    EXPECT_EQ(health.status, 503);
    const Json json = Json::parse(health.body);
    EXPECT_EQ(json["status"], "loading");
    EXPECT_EQ(json["stage"], name);
    EXPECT_EQ(json["stages"].size(), kLoadStages.size());
    EXPECT_EQ(json["fraction"], fraction);
    EXPECT_GE(json["seconds"], 0.0);
  }
  const TestAnswer work = client.post("/v1/completions", kShort);
  EXPECT_EQ(work.status, 503);
  EXPECT_EQ(work.headers.count("retry-after"), 1u);
  EXPECT_EQ(client.get("/metrics").status, 200);
  gate.open();
  ASSERT_TRUE(server.wait_until_ready());
  EXPECT_EQ(client.post("/v1/completions", kShort).status, 200);
}

TEST(Server, EndsWithTheErrorOfAModelThatCannotBeOpened) {
  TestServer server([](ServerParts& parts) {
    parts.open = [] {
      EngineOptions options = tiny_engine();
      options.model = "/no/such/model";
      return Engine::open(options);
    };
  });
  const Status status = server.wait();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("/no/such/model"), std::string::npos);
}

TEST(Server, RefusesWhatTheQueueCannotHold) {
  TestServer server([](ServerParts& parts) {
    with_narrow_engine(parts);
    parts.options.max_queue = 2;
  });
  ASSERT_TRUE(server.wait_until_ready());
  std::vector<TestClient> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back(server.port());
    busy.back().send(post_text("/v1/completions", long_call(true)));
    ASSERT_TRUE(busy.back().receive_until("\r\n\r\n", std::chrono::seconds(10)));
  }
  TestClient client(server.port());
  const auto start = std::chrono::steady_clock::now();
  const TestAnswer refused = client.post("/v1/completions", kShort);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.count("retry-after"), 1u);
  EXPECT_EQ(error_type(refused), "rate_limit_error");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_EQ(client.get("/health").status, 200);
  busy.clear();
  ASSERT_TRUE(server.wait_until_free());
  EXPECT_EQ(client.post("/v1/completions", kShort).status, 200);
}

// A datagram socket on which a service manager listens.
class ManagerSocket {
 public:
  ManagerSocket() : name_("@outrider-test-" + std::to_string(::getpid())), fd_(bound()) {}
  ~ManagerSocket() { ::close(fd_); }
  ManagerSocket(const ManagerSocket&) = delete;
  ManagerSocket& operator=(const ManagerSocket&) = delete;

  const std::string& name() const { return name_; }
  // The datagram that arrives within this time; empty: none.
  std::string receive(milliseconds time) const {
    pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(time.count())) <= 0) return {};
    std::array<char, 256> bytes = {};
    const ssize_t size = ::recv(fd_, bytes.data(), bytes.size(), 0);
    return {bytes.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
  }

 private:
  int bound() const {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path + 1, sizeof address.sun_path - 2, 1);  // an abstract name begins with a zero
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) std::abort();
    return fd;
  }

  std::string name_;
  int fd_;
};

TEST(Server, TellsTheManagerWhenItIsReadyAndWhenItStops) {
  const ManagerSocket manager;
  Gate gate;
  TestServer server([&](ServerParts& parts) {
    parts.notify_socket = manager.name();
    parts.open = [&gate] {
      gate.wait();
      return Engine::open(tiny_engine());
    };
  });
  EXPECT_EQ(manager.receive(milliseconds(100)), "");  // the server listens but is not ready
  gate.open();
  EXPECT_EQ(manager.receive(std::chrono::seconds(60)), "READY=1\nSTATUS=serving tiny");
  EXPECT_TRUE(server.wait_until_ready());
  server.server().drain();
  EXPECT_EQ(manager.receive(std::chrono::seconds(60)), "STOPPING=1");
  EXPECT_TRUE(server.wait().ok());
}

TEST(Server, DrainsWhatRuns) {
  TestServer server(with_slow_engine);
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port()), other(server.port());
  client.send(post_text("/v1/completions", long_call(true, 200)));
  ASSERT_TRUE(client.receive_until("data: ", std::chrono::seconds(10)));
  server.server().drain();
  const TestAnswer health = other.get("/health");
  EXPECT_EQ(Json::parse(health.body)["status"], "draining");
  const TestAnswer refused = TestClient(server.port()).post("/v1/completions", kShort);
  EXPECT_TRUE(refused.status == 503 || refused.status == 0) << refused.status;
  EXPECT_TRUE(client.receive_until("data: [DONE]", std::chrono::seconds(30)));
}

TEST(Server, ASignalEndsAnIdleServer) {
  TestServer server([](ServerParts&) {}, /*takes_signals=*/true);
  ASSERT_TRUE(server.wait_until_ready());
  ASSERT_EQ(std::raise(SIGTERM), 0);
  EXPECT_TRUE(server.wait().ok());
}

TEST(Server, AbortedStreamsEndWithAnError) {
  TestServer server([](ServerParts& parts) {
    with_slow_engine(parts);
    parts.options.drain_timeout = 0.05;
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  client.send(post_text("/v1/completions", long_call(true)));
  ASSERT_TRUE(client.receive_until("data: ", std::chrono::seconds(10)));
  server.server().drain();
  const auto event = client.receive_until("\"error\"", std::chrono::seconds(10));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->find("[DONE]"), std::string::npos);
  EXPECT_TRUE(client.is_closed(std::chrono::seconds(5)));
  EXPECT_TRUE(server.stop().ok());
}

}  // namespace
}  // namespace outrider
