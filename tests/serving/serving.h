// SPDX-License-Identifier: Apache-2.0
// A blocking HTTP client and a server, for tests.
#pragma once

#include <gtest/gtest.h>

#include <openssl/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "server/server.h"

namespace outrider {

// The answer to one request. `status` 0: the connection closed without an answer.
struct TestAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks joined
  bool is_whole = false;                       // it ended as its headers announced
};

class TestClient {
 public:
  explicit TestClient(int port, const std::string& from = "127.0.0.1", int receive_buffer = 0);
  explicit TestClient(const std::string& socket);  // the path of a UNIX socket
  ~TestClient();
  // Speaks TLS from now on, with a server that has its certificate in the PEM file `authority`. False: the
  // handshake failed.
  bool secure(const std::filesystem::path& authority);
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;
  TestClient(TestClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), tls_(std::move(other.tls_)), rest_(std::move(other.rest_)) {}

  bool is_connected() const { return fd_ >= 0; }
  // False: the peer closed the connection.
  bool send(std::string_view bytes);
  // The bytes that arrive within this time; empty: none, or the connection is closed.
  std::string receive(std::chrono::milliseconds time);
  // Receives up to the end of `text`. nullopt: closed or timeout.
  std::optional<std::string> receive_until(std::string_view text, std::chrono::milliseconds time);
  TestAnswer read_answer(std::chrono::milliseconds time = std::chrono::seconds(60));
  bool is_closed(std::chrono::milliseconds time);
  void half_close();
  void close();
  // Closes with a reset instead of an orderly end.
  void abort();

  TestAnswer get(const std::string& path, const std::string& headers = "");
  TestAnswer post(const std::string& path, const std::string& body, const std::string& headers = "");

 private:
  bool fill(std::chrono::steady_clock::time_point end);

  struct FreeTls {
    void operator()(ssl_st* tls) const;
  };

  int fd_ = -1;
  std::unique_ptr<ssl_st, FreeTls> tls_;  // null: plain
  std::string rest_;                      // received bytes that nobody has taken yet
};

std::string post_text(const std::string& path, const std::string& body, const std::string& headers = "");

// Runs a server on another thread, on 127.0.0.1 and a free port.
class TestServer {
 public:
  // `change` may change the parts; by default the model is the small one of tests/data.
  explicit TestServer(const std::function<void(ServerParts&)>& change = {}, bool takes_signals = false);
  ~TestServer();

  int port() const { return server_->port(); }
  Server& server() { return *server_; }
  // A new connection, over TLS if the server has a certificate.
  TestClient client() const;
  // False: not ready within a minute.
  bool wait_until_ready() const;
  // The value of a sample in /metrics: "vllm:num_requests_running", or with labels beyond the common ones.
  double metric(const std::string& name, const std::string& label = "") const;
  // Wait until the engine is idle and all its pages are free, or until it runs a request. False: not within a
  // minute.
  bool wait_until_free() const;
  bool wait_until_busy() const;
  // Ends the server and returns the result of run().
  Status stop();
  // Waits until run() returns by itself.
  Status wait();

 private:
  bool wait_for_stats(const std::function<bool(int64_t pages, int64_t calls)>& condition) const;

  std::filesystem::path certificate_;  // empty: no TLS
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::optional<Status> result_;
};

// The model of tests/data/models/llama, with a context of 256 tokens.
EngineOptions tiny_engine();
// That model with a drafter that makes every step take at least this long.
EngineOptions slow_engine(std::chrono::milliseconds step);

}  // namespace outrider
