// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection.h"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace outrider {
namespace {

namespace asio = boost::asio;

constexpr size_t kReadAhead = 64 << 10;  // maximum bytes of further requests while one is answered
constexpr size_t kReadSize = 2048;

}  // namespace

// A running watch. However its coroutine ends, everyone who waits for that learns it.
class Connection::Watch {
 public:
  explicit Watch(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {
    connection_->is_watched_ = true;
    connection_->ends_watch_ = false;
  }
  ~Watch() {
    if (!connection_->ends_watch_) connection_->is_gone_ = true;
    connection_->is_watched_ = false;
    connection_->wake();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  std::shared_ptr<Connection> connection_;
};

Connection::Connection(Service* service, Socket socket, std::string address)
    : service_(service),
      stream_(std::move(socket), service->tls.get()),
      address_(std::move(address)),
      wake_(stream_.get_executor()) {
  boost::system::error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);  // UNIX sockets have none
  ++service_->connections;
}

Connection::~Connection() { --service_->connections; }

Connection::Task<bool> Connection::handshake() {
  ClientStream::SecureSocket* const secure = stream_.secure();
  if (secure == nullptr) co_return true;
  set_deadline(service_->limits.header_time);
  boost::system::error_code error;
  co_await secure->async_handshake(asio::ssl::stream_base::server,
                                   asio::redirect_error(asio::use_awaitable, error));
  set_no_deadline();
  if (error) service_->metrics.on_drop(DropReason::kHandshake);
  co_return !error;
}

Connection::Task<bool> Connection::wait_for_bytes(Duration time) {
  if (buffer_.size() > 0) co_return true;
  set_deadline(time);
  is_idle_ = true;
  boost::system::error_code error;
  const size_t count = co_await stream_.async_read_some(buffer_.prepare(kReadSize),
                                                        asio::redirect_error(asio::use_awaitable, error));
  buffer_.commit(count);
  is_idle_ = false;
  co_return !error && !service_->is_closing;
}

Connection::Task<bool> Connection::write(std::string_view bytes) {
  boost::system::error_code error;
  while (!bytes.empty() && !error) {
    set_deadline(service_->limits.write_stall);
    const asio::const_buffer rest(bytes.data(), bytes.size());
    const size_t sent =
        co_await stream_.async_write_some(rest, asio::redirect_error(asio::use_awaitable, error));
    bytes.remove_prefix(sent);
  }
  set_no_deadline();
  if (error && is_expired_) service_->metrics.on_drop(DropReason::kSlowReader);
  if (error && !is_expired_) is_gone_ = true;  // the watch may learn it later
  co_return !error;
}

Connection::Task<void> Connection::linger() {
  boost::system::error_code error;
  set_deadline(service_->limits.close_time);
  if (ClientStream::SecureSocket* const secure = stream_.secure())
    co_await secure->async_shutdown(asio::redirect_error(asio::use_awaitable, error));
  stream_.socket().shutdown(Socket::shutdown_send, error);
  std::array<char, kReadSize> bytes;
  while (!error) {
    const asio::mutable_buffer space(bytes.data(), bytes.size());
    co_await stream_.socket().async_read_some(space, asio::redirect_error(asio::use_awaitable, error));
  }
}

void Connection::start_watch() {
  asio::co_spawn(stream_.get_executor(), watch(std::make_shared<Watch>(shared_from_this())), asio::detached);
}

Connection::Task<void> Connection::watch(std::shared_ptr<Watch> /*watch*/) {
  while (!ends_watch_) {
    boost::system::error_code error;
    const size_t count = co_await stream_.async_read_some(buffer_.prepare(kReadSize),
                                                          asio::redirect_error(asio::use_awaitable, error));
    buffer_.commit(count);
    if (ends_watch_) break;
    const bool is_too_much = buffer_.size() > kReadAhead;
    if (is_too_much) service_->metrics.on_drop(DropReason::kReadAhead);
    if (error || is_too_much) break;
  }
}

Connection::Task<void> Connection::stop_watch() {
  ends_watch_ = true;
  boost::system::error_code ignored;
  if (is_watched_) stream_.socket().cancel(ignored);
  while (is_watched_) co_await wait(Duration(1000));
}

Connection::Task<void> Connection::wait(Duration time) {
  wake_.expires_after(time);
  boost::system::error_code ignored;
  co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

void Connection::check_deadline(Clock::time_point now) {
  if (now < deadline_) return;
  is_expired_ = true;
  set_no_deadline();
  boost::system::error_code ignored;
  stream_.socket().cancel(ignored);
}

void Connection::close() {
  boost::system::error_code ignored;
  is_gone_ = true;
  stream_.socket().shutdown(Socket::shutdown_both, ignored);
  stream_.socket().cancel(ignored);
  wake();
}

}  // namespace outrider
