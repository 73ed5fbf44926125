// SPDX-License-Identifier: Apache-2.0
#include "server/http/listener.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>
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

using UnixProtocol = asio::local::stream_protocol;

// Precondition: an endpoint of TCP.
tcp::endpoint tcp_endpoint(const asio::generic::stream_protocol::endpoint& generic) {
  tcp::endpoint endpoint;
  std::memcpy(endpoint.data(), generic.data(), generic.size());
  return endpoint;
}

std::string address_text(const asio::generic::stream_protocol::endpoint& peer) {
  return peer.protocol().family() == AF_UNIX ? std::string(kUnixAddress)
                                             : tcp_endpoint(peer).address().to_string();
}

// Whether a server listens on the socket. One that ended without removing it does not.
bool is_served(asio::io_context& io, const UnixProtocol::endpoint& endpoint) {
  UnixProtocol::socket socket(io);
  Code error;
  socket.connect(endpoint, error);
  return !error;
}

// Error: others can reach the address, and keys do not keep them out.
Status check_reach(const asio::ip::address& address, const ApiKeys& keys) {
  const std::string host = address.to_string();
  const bool is_local = address.is_loopback() ||
                        (address.is_v6() && address.to_v6().is_v4_mapped() &&
                         asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback());
  if (!is_local && !keys.required()) {
    return usage_error(
        fmt::format("--host {} can be reached by others, so keys are required: add --api-key-file FILE, or "
                    "listen on 127.0.0.1",
                    host));
  }
  if (!is_local && keys.has_short()) {
    return usage_error(fmt::format(
        "--host {} can be reached by others: expected keys of at least {} characters, found a shorter "
        "--api-key; openssl rand -hex 32 makes one",
        host, ApiKeys::kMinLength));
  }
  return {};
}

void log_exception(const std::exception_ptr& exception) {
  if (exception != nullptr) log_failure("connection_failed", exception);
}

}  // namespace

// Registers a connection for as long as its coroutine runs.
class Listener::Registration {
 public:
  Registration(Listener* listener, std::shared_ptr<Connection> connection)
      : listener_(listener), connection_(std::move(connection)) {
    const auto count = listener_->by_address_.try_emplace(connection_->address(), 0).first;
    listener_->connections_.insert(connection_.get());
    ++count->second;
  }
  ~Registration() {
    if (connection_.use_count() > 1) connection_->close();  // other coroutines of this connection end, too
    listener_->connections_.erase(connection_.get());
    const auto count = listener_->by_address_.find(connection_->address());
    if (--count->second == 0) listener_->by_address_.erase(count);
  }
  Connection& connection() { return *connection_; }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  Listener* listener_;
  std::shared_ptr<Connection> connection_;
};

// Notes for as long as it lives that a coroutine runs.
class Listener::Running {
 public:
  explicit Running(bool* flag) : flag_(flag) { *flag_ = true; }
  ~Running() { *flag_ = false; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  bool* flag_;
};

Listener::Listener(asio::io_context* io, Service* service)
    : io_(io), service_(service), acceptor_(*io), sweep_(*io) {}

Listener::~Listener() { remove_socket(); }

void Listener::remove_socket() {
  if (!path_.empty()) ::unlink(std::exchange(path_, {}).c_str());
}

Status Listener::open(std::optional<int> descriptor) {
  if (descriptor) return take_over(*descriptor);
  const std::string& host = service_->options.host;
  const std::string path = socket_path(host);
  return path.empty() ? open_address(host == "localhost" ? "127.0.0.1" : host) : open_socket(path);
}

Status Listener::open_address(const std::string& host) {
  const ServerOptions& options = service_->options;
  Code error;
  const auto address = asio::ip::make_address(host, error);
  if (error) {
    return usage_error(fmt::format(
        "--host: expected an address such as 127.0.0.1 or ::1, or the path of a UNIX socket, found '{}'",
        options.host));
  }
  OUTRIDER_RETURN_IF_ERROR(check_reach(address, service_->keys));
  error = bind(tcp::endpoint(address, static_cast<uint16_t>(options.port)));
  if (error)
    return io_error(fmt::format("cannot listen on {} port {}: {}; choose another --port or --host", host,
                                options.port, error.message()));
  port_ = tcp_endpoint(acceptor_.local_endpoint()).port();
  return {};
}

// The permissions of the file decide who connects, so keys are not required.
Status Listener::open_socket(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    return usage_error(fmt::format("--host: expected a path of fewer than {} bytes, found {}",
                                   sizeof(sockaddr_un::sun_path), path.size()));
  const UnixProtocol::endpoint endpoint(path);
  std::error_code ignored;
  if (std::filesystem::is_socket(path, ignored) && !is_served(*io_, endpoint)) ::unlink(path.c_str());
  const Code error = bind(endpoint);
  if (error)
    return io_error(
        fmt::format("cannot listen on the UNIX socket {}: {}; choose another --host", path, error.message()));
  path_ = path;
  return {};
}

Status Listener::take_over(int descriptor) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;
  int listens = 0;
  socklen_t flag_size = sizeof listens;
  const bool is_socket = ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&storage), &size) == 0 &&
                         ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &flag_size) == 0;
  const bool is_known =
      storage.ss_family == AF_UNIX || storage.ss_family == AF_INET || storage.ss_family == AF_INET6;
  if (!is_socket || listens == 0 || !is_known) {
    return usage_error(fmt::format(
        "LISTEN_FDS: expected a listening socket as descriptor {}; a unit with ListenStream= makes one",
        descriptor));
  }
  const bool is_local = storage.ss_family == AF_UNIX;
  Code error;
  acceptor_.assign(Protocol(storage.ss_family, is_local ? 0 : IPPROTO_TCP), descriptor, error);
  if (error) return io_error(fmt::format("cannot take over descriptor {}: {}", descriptor, error.message()));
  acceptor_.set_option(asio::socket_base::send_buffer_size(service_->limits.send_buffer_bytes), error);
  if (is_local) return {};
  const tcp::endpoint endpoint = tcp_endpoint(acceptor_.local_endpoint());
  port_ = endpoint.port();
  return check_reach(endpoint.address(), service_->keys);
}

Code Listener::bind(const Protocol::endpoint& endpoint) {
  Code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  // Accepted sockets inherit this option.
  if (!error)
    acceptor_.set_option(asio::socket_base::send_buffer_size(service_->limits.send_buffer_bytes), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

void Listener::start() {
  const auto go_on = [this](const std::exception_ptr& failure) {
    log_exception(failure);
    if (failure != nullptr) start();
  };
  if (!is_accepting_ && !is_stopped_)
    asio::co_spawn(*io_, accept(std::make_unique<Running>(&is_accepting_)), go_on);
  if (!is_watching_ && !(is_stopped_ && connections_.empty()))
    asio::co_spawn(*io_, watch_deadlines(std::make_unique<Running>(&is_watching_)), go_on);
}

void Listener::stop() {
  is_stopped_ = true;
  service_->is_closing = true;
  Code ignored;
  acceptor_.close(ignored);
  remove_socket();
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

Connection::Task<void> Listener::accept(std::unique_ptr<Running> /*running*/) {
  while (!is_stopped_) {
    Code error;
    Socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!error && take_unless_it_fails(std::move(socket))) continue;
    if (is_stopped_) co_return;
    asio::steady_timer pause(*io_, kAcceptPause);
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
}

// False: there was not enough memory for another connection, and the client was let go.
bool Listener::take_unless_it_fails(Socket socket) {
  try {
    take(std::move(socket));
    return true;
  } catch (const std::exception&) {
    log_failure("connection_refused", std::current_exception());
    return false;
  }
}

void Listener::take(Socket socket) {
  Code error;
  const Protocol::endpoint peer = socket.remote_endpoint(error);
  if (error) return;
  const std::string address = address_text(peer);
  const ServerOptions& options = service_->options;
  const auto count = by_address_.find(address);
  // Behind a UNIX socket there is one client, a proxy.
  const int same_address = count == by_address_.end() || !path_.empty() ? 0 : count->second;
  if (service_->connections >= options.max_connections ||
      same_address >= options.max_connections_per_address) {
    service_->metrics.on_drop(DropReason::kTooMany);
    return;  // which closes the socket
  }
  auto connection = std::make_shared<Connection>(service_, std::move(socket), address);
  asio::co_spawn(*io_, serve(std::make_unique<Registration>(this, std::move(connection))), log_exception);
}

Connection::Task<void> Listener::serve(std::unique_ptr<Registration> registration) {
  Connection& connection = registration->connection();
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

Connection::Task<void> Listener::watch_deadlines(std::unique_ptr<Running> /*running*/) {
  while (!is_stopped_ || !connections_.empty()) {
    Code ignored;
    sweep_.expires_after(kSweepInterval);
    co_await sweep_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    try {
      check_deadlines();
    } catch (const std::exception&) {  // the next sweep does what this one has left
      log_failure("sweep_failed", std::current_exception());
    }
  }
}

void Listener::check_deadlines() {
  start();
  const auto now = Connection::Clock::now();
  for (Connection* connection : connections_) connection->check_deadline(now);
  if (service_->batches != nullptr) service_->batches->tick();
  if (service_->engine == nullptr) return;  // the engines of a fleet have the calls
  service_->calls.cancel_abandoned(*service_->engine);
  expire_calls();
  expire_sessions();
}

void Listener::expire_calls() {
  const double timeout = service_->options.request_timeout;
  if (timeout <= 0) return;
  const ApiError error = {
      .status = 504,
      .type = "timeout_error",
      .message = fmt::format("the request took longer than {} s, the limit of this server", timeout),
      .code = "request_timeout"};
  service_->calls.expire(now_ms() - timeout * 1e3, error, *service_->engine);
}

// Nobody comes back to a server that shuts down.
void Listener::expire_sessions() {
  if (service_->drafting.size() == 0) return;
  const auto kept =
      service_->phase == Phase::kDraining ? std::chrono::milliseconds(0) : service_->limits.session_time;
  service_->drafting.expire(now_ms() - static_cast<double>(kept.count()), service_->calls, *service_->engine);
}

}  // namespace outrider
