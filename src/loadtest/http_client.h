// SPDX-License-Identifier: Apache-2.0
// A client of one server: HTTP/1.1 without TLS, on the calling thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "loadtest/load_test_plan.h"
#include "outrider/result.h"

namespace outrider {

struct HttpRequest {
  std::string method = "GET";
  std::string path = {};  // relative to the server's root
  std::string body = {};  // JSON
  double timeout_ms = 60e3;
};

enum class HttpEndKind : uint8_t {
  kComplete,   // the whole response was received
  kNotOpened,  // no connection
  kTimeout,
  kBroken,     // the connection ended early, or the response was not HTTP
  kCancelled,  // by cancel_all() or by the handler
};

struct HttpEnd {
  HttpEndKind kind = HttpEndKind::kComplete;
  std::string message;  // from the operating system
};

// Receives a response, in the thread of run(). Times come from now_ms().
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void on_status(int status, std::string_view content_type) = 0;
  // Gets all bytes of the body that arrived together. False: cancel the request.
  virtual bool on_body(std::string_view bytes, double at_ms) = 0;
  // The last call for a request. It may send another one.
  virtual void on_end(const HttpEnd& end, double at_ms) = 0;
};

class HttpClient {
 public:
  // Error: the host's name cannot be resolved.
  static Result<std::unique_ptr<HttpClient>> open(const ServerAddress& server, std::string api_key);
  ~HttpClient();

  // Uses an idle connection if there is one. If that turns out to be closed, sends the request again over a
  // new one.
  void send(HttpRequest request, std::shared_ptr<HttpHandler> handler);
  // Runs `call` after `ms` milliseconds.
  void after(double ms, std::function<void()> call);
  // Ends all requests, and all timers without running their calls.
  void cancel_all();
  // Runs until all requests and timers have ended. A first SIGINT or SIGTERM calls `on_interrupt`; a second
  // one ends the process.
  void run(const std::function<void()>& on_interrupt);

 private:
  struct Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
