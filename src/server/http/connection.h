// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/client_stream.h"
#include "server/http/service.h"

namespace outrider {

inline constexpr std::string_view kUnixAddress = "unix";  // of the clients of a UNIX socket

// A client with a deadline for the operation that its coroutine waits for. It also notices when its peer goes
// away. Every coroutine that uses it owns a share of it, because each may end first. Only the I/O thread uses
// it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = ClientStream::Socket;
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::milliseconds;
  template <typename T>
  using Task = boost::asio::awaitable<T>;

  Connection(Service* service, Socket socket, std::string address);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Agrees on the keys of TLS, where the server has a certificate. False: the peer does not, or not in time.
  Task<bool> handshake();
  // False: the peer closed the connection, or no bytes came in time.
  Task<bool> wait_for_bytes(Duration time);
  // False: the connection is broken, or no byte was taken for write_stall. The total time is not limited.
  Task<bool> write(std::string_view bytes);
  // Lets the peer read the last answer before the socket closes, by discarding the bytes that still arrive.
  Task<void> linger();

  // Between these two calls the connection notices when its peer goes away, and buffers bytes of the next
  // request.
  void start_watch();
  Task<void> stop_watch();
  bool is_gone() const { return is_gone_; }

  // Waits until wake(), at most `time`.
  Task<void> wait(Duration time);
  void wake() { wake_.cancel(); }

  void set_deadline(Duration from_now) { deadline_ = Clock::now() + from_now; }
  void set_no_deadline() { deadline_ = Clock::time_point::max(); }
  // Whether the deadline ended an operation.
  bool is_expired() const { return is_expired_; }
  void check_deadline(Clock::time_point now);
  bool is_idle() const { return is_idle_; }
  void close();

  Service& service() { return *service_; }
  const HttpLimits& limits() const { return service_->limits; }
  ClientStream& stream() { return stream_; }
  boost::beast::flat_buffer& buffer() { return buffer_; }
  const std::string& address() const { return address_; }

 private:
  class Watch;

  Task<void> watch(std::shared_ptr<Watch> watch);

  Service* service_;
  ClientStream stream_;
  std::string address_;
  boost::beast::flat_buffer buffer_;  // bytes that were read and not parsed yet
  boost::asio::steady_timer wake_;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool is_expired_ = false;
  bool is_idle_ = false;     // between two requests
  bool is_watched_ = false;  // a watch is running
  bool ends_watch_ = false;
  bool is_gone_ = false;
};

}  // namespace outrider
