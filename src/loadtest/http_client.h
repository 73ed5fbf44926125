// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 without TLS to one server, on the calling thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "loadtest/load_plan.h"
#include "outrider/result.h"

namespace outrider {

struct HttpRequest {
  std::string method = "GET";
  std::string path = {};  // below the server's root
  std::string body = {};  // JSON
  double timeout_ms = 60e3;
};

enum class HttpEndKind : uint8_t {
  kComplete,   // the whole response has come
  kNotOpened,  // no connection
  kTimeout,
  kBroken,     // the connection ended first, or did not speak HTTP
  kCancelled,  // by cancel_all(), or by the handler
};

struct HttpEnd {
  HttpEndKind kind = HttpEndKind::kComplete;
  std::string message;  // of the operating system
};

// What comes back, in the thread of run(). Times are those of now_ms().
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void on_status(int status, std::string_view content_type) = 0;
  // All bytes of the body that came at once. False: no more is wanted.
  virtual bool on_body(std::string_view bytes, double at_ms) = 0;
  // Last; may send again.
  virtual void on_end(const HttpEnd& end, double at_ms) = 0;
};

class HttpClient {
 public:
  // Error: the host's name is not known.
  static Result<std::unique_ptr<HttpClient>> open(const ServerAddress& server, std::string api_key);
  ~HttpClient();

  // Over an idle connection if there is one; a request that finds it closed goes out once more over a new
  // one.
  void send(HttpRequest request, std::shared_ptr<HttpHandler> handler);
  // Calls it that much later.
  void after(double ms, std::function<void()> call);
  // Ends everything under way, timers without their calls.
  void cancel_all();
  // Until nothing is under way. The first interrupt from outside (SIGINT, SIGTERM) meanwhile calls
  // `on_interrupt`, a second one ends the process as ever.
  void run(const std::function<void()>& on_interrupt);

 private:
  struct Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
