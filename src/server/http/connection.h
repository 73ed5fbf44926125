// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "server/http/service.h"

namespace outrider {

// A socket with a deadline for whatever its coroutine is waiting for, and an eye on its peer. Of the I/O
// thread.
class Connection {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::milliseconds;
  template <typename T>
  using Task = boost::asio::awaitable<T>;

  Connection(Service* service, Socket socket, std::string address);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // False: the peer closed, or nothing came in time.
  Task<bool> wait_for_bytes(Duration time);
  // False: broken, or stalled for too long. Progress is what counts, not the whole.
  Task<bool> write(std::string_view bytes);
  // Lets the peer read the last answer before the socket goes: reads and forgets what is on its way.
  Task<void> linger();

  // Between these two, a peer that goes away is noticed; bytes that come are kept for the next request.
  void start_watch();
  Task<void> stop_watch();
  bool is_gone() const { return is_gone_; }

  // Until wake(), or for this long.
  Task<void> wait(Duration time);
  void wake() { wake_.cancel(); }

  void set_deadline(Duration from_now) { deadline_ = Clock::now() + from_now; }
  void set_no_deadline() { deadline_ = Clock::time_point::max(); }
  // Whether the last wait was cut short.
  bool is_expired() const { return is_expired_; }
  void check_deadline(Clock::time_point now);
  bool is_idle() const { return is_idle_; }
  void close();

  Service& service() { return *service_; }
  const HttpLimits& limits() const { return service_->limits; }
  Socket& socket() { return socket_; }
  boost::beast::flat_buffer& buffer() { return buffer_; }
  const std::string& address() const { return address_; }

 private:
  Task<void> watch();

  Service* service_;
  Socket socket_;
  std::string address_;
  boost::beast::flat_buffer buffer_;  // read, not yet parsed
  boost::asio::steady_timer wake_;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool is_expired_ = false;
  bool is_idle_ = false;     // between two requests
  bool is_watched_ = false;  // a watch is running
  bool ends_watch_ = false;
  bool is_gone_ = false;
};

}  // namespace outrider
