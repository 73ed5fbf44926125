// SPDX-License-Identifier: Apache-2.0
#include "server/http/listener.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/http/request_handler.h"

namespace outrider {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Code = boost::system::error_code;

constexpr auto kSweepInterval = std::chrono::milliseconds(100);
constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // pause when file descriptors ran out

void log_exception(const std::exception_ptr& exception) {
  if (exception == nullptr) return;
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    log_event("connection_failed", error.what());
  }
}

}  // namespace

// Registers a connection for as long as its coroutine runs.
class Listener::Registration {
 public:
  Registration(Listener* listener, Connection* connection) : listener_(listener), connection_(connection) {
    listener_->connections_.insert(connection_);
  }
  ~Registration() {
    listener_->connections_.erase(connection_);
    const auto count = listener_->by_address_.find(connection_->address());
    if (--count->second == 0) listener_->by_address_.erase(count);
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  Listener* listener_;
  Connection* connection_;
};

Listener::Listener(asio::io_context* io, Service* service)
    : io_(io), service_(service), acceptor_(*io), sweep_(*io) {}

Status Listener::open() {
  const ServerOptions& options = service_->options;
  const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
  Code error;
  const auto address = asio::ip::make_address(host, error);
  if (error) {
    return usage_error(
        fmt::format("--host: expected an address such as 127.0.0.1 or ::1, found '{}'", options.host));
  }
  const bool is_local = address.is_loopback() ||
                        (address.is_v6() && address.to_v6().is_v4_mapped() &&
                         asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback());
  if (!is_local && !service_->keys.required()) {
    return usage_error(
        fmt::format("--host {} can be reached by others, so keys are required: add --api-key-file FILE, or "
                    "listen on 127.0.0.1",
                    host));
  }
  const tcp::endpoint endpoint(address, static_cast<uint16_t>(options.port));
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  // Accepted sockets inherit this option.
  if (!error)
    acceptor_.set_option(asio::socket_base::send_buffer_size(service_->limits.send_buffer_bytes), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return io_error(fmt::format("cannot listen on {} port {}: {}; choose another --port or --host", host,
                                options.port, error.message()));
  port_ = acceptor_.local_endpoint().port();
  return {};
}

void Listener::start() {
  asio::co_spawn(*io_, accept(), asio::detached);
  asio::co_spawn(*io_, watch_deadlines(), asio::detached);
}

void Listener::stop() {
  is_stopped_ = true;
  service_->is_closing = true;
  Code ignored;
  acceptor_.close(ignored);
  const std::vector<Connection*> connections(connections_.begin(), connections_.end());
  for (Connection* connection : connections) {
    if (connection->is_idle()) connection->close();
  }
}

void Listener::close_all() {
  sweep_.cancel();
  const std::vector<Connection*> connections(connections_.begin(), connections_.end());
  for (Connection* connection : connections) connection->close();
}

Connection::Task<void> Listener::accept() {
  while (!is_stopped_) {
    Code error;
    Socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      take(std::move(socket));
    } else if (!is_stopped_) {
      asio::steady_timer pause(*io_, kAcceptPause);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

void Listener::take(Socket socket) {
  Code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;
  const std::string address = peer.address().to_string();
  const ServerOptions& options = service_->options;
  int& count = by_address_[address];
  if (service_->connections >= options.max_connections || count >= options.max_connections_per_address) {
    if (count == 0) by_address_.erase(address);
    service_->metrics.on_drop(DropReason::kTooMany);
    return;  // which closes the socket
  }
  ++count;
  asio::co_spawn(*io_, serve(std::move(socket), address), log_exception);
}

Connection::Task<void> Listener::serve(Socket socket, std::string address) {
  Connection connection(service_, std::move(socket), std::move(address));
  const Registration registration(this, &connection);
  std::exception_ptr failure;
  try {
    bool goes_on = co_await connection.handshake();
    if (goes_on) goes_on = co_await connection.wait_for_bytes(service_->limits.header_time);
    while (goes_on) {
      goes_on = co_await handle_request(connection);
      if (goes_on) goes_on = co_await connection.wait_for_bytes(service_->limits.idle_time);
    }
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  co_await connection.stop_watch();  // the watch still runs after an exception
  if (failure != nullptr) std::rethrow_exception(failure);
  if (!connection.is_gone()) co_await connection.linger();
}

Connection::Task<void> Listener::watch_deadlines() {
  while (!is_stopped_ || !connections_.empty()) {
    Code ignored;
    sweep_.expires_after(kSweepInterval);
    co_await sweep_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    const auto now = Connection::Clock::now();
    for (Connection* connection : connections_) connection->check_deadline(now);
    expire_sessions();
  }
}

// Nobody comes back to a server that shuts down.
void Listener::expire_sessions() {
  if (service_->drafting.size() == 0) return;
  const auto kept =
      service_->phase == Phase::kDraining ? std::chrono::milliseconds(0) : service_->limits.session_time;
  service_->drafting.expire(now_ms() - static_cast<double>(kept.count()), service_->calls, *service_->engine);
}

}  // namespace outrider
