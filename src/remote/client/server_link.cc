// SPDX-License-Identifier: Apache-2.0
#include "remote/client/server_link.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/quote.h"
#include "remote/protocol/messages.h"

namespace outrider {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace ws = boost::beast::websocket;
using Code = boost::system::error_code;

std::chrono::microseconds microseconds(double ms) {
  return std::chrono::microseconds(static_cast<int64_t>(std::max(ms, 0.0) * 1e3));
}

}  // namespace

struct ServerLink::Impl {
  explicit Impl(DraftingServer to) : server(std::move(to)) {}

  Status connect(double timeout_ms);
  Status handshake(double timeout_ms);
  Error refusal(const ws::response_type& response) const;
  // Runs until `is_done` or the end of the time. False: the time ended first.
  bool run(double timeout_ms, const std::function<bool()>& is_done);
  void read();
  void write();
  Status broken() const {
    return io_error("the connection to " + server.url() + " broke: " + failure.message());
  }

  DraftingServer server;
  net::io_context io{1};
  ws::stream<beast::tcp_stream> socket{io};
  beast::flat_buffer buffer;
  std::deque<std::string> received;
  std::deque<std::string> unsent;  // the first is being sent
  Code failure;                    // of reading or writing
};

bool ServerLink::Impl::run(double timeout_ms, const std::function<bool()>& is_done) {
  const double end_ms = now_ms() + timeout_ms;
  io.restart();
  while (!is_done()) {
    const double left_ms = end_ms - now_ms();
    if (left_ms <= 0) return false;
    if (io.run_one_for(microseconds(left_ms)) == 0 && io.stopped()) return is_done();
  }
  return true;
}

Status ServerLink::Impl::connect(double timeout_ms) {
  Code error;
  net::ip::tcp::resolver resolver(io);
  const auto endpoints = resolver.resolve(server.host, server.port, error);
  if (error) return io_error("cannot find " + server.url() + ": " + error.message());
  beast::tcp_stream& stream = beast::get_lowest_layer(socket);
  stream.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(microseconds(timeout_ms)));
  bool is_done = false;
  stream.async_connect(endpoints, [&](const Code& code, const auto&) {
    error = code;
    is_done = true;
  });
  run(timeout_ms + 1000, [&] { return is_done; });
  stream.expires_never();
  if (error) return io_error("cannot reach " + server.url() + ": " + error.message());
  stream.socket().set_option(net::ip::tcp::no_delay(true), error);
  return handshake(timeout_ms);
}

Status ServerLink::Impl::handshake(double timeout_ms) {
  ws::stream_base::timeout timeout = ws::stream_base::timeout::suggested(beast::role_type::client);
  timeout.handshake_timeout = microseconds(timeout_ms);
  socket.set_option(timeout);
  socket.set_option(ws::stream_base::decorator([this](ws::request_type& request) {
    request.set(beast::http::field::sec_websocket_protocol, kDraftingProtocol);
    if (!server.api_key.empty()) request.set(beast::http::field::authorization, "Bearer " + server.api_key);
  }));
  socket.read_message_max(kMaxServerMessage);
  socket.binary(true);
  Code error;
  bool is_done = false;
  ws::response_type response;
  const std::string host = server.url().substr(5);
  socket.async_handshake(response, host, std::string(kDraftingPath), [&](const Code& code) {
    error = code;
    is_done = true;
  });
  run(timeout_ms + 1000, [&] { return is_done; });
  if (error == ws::error::upgrade_declined) return refusal(response);
  if (error) return io_error("cannot talk to " + server.url() + ": " + error.message());
  read();
  return {};
}

// A server that is loading or full may take the client later.
Error ServerLink::Impl::refusal(const ws::response_type& response) const {
  const int status = static_cast<int>(response.result_int());
  const bool is_temporary = status == 429 || status == 503;
  return {is_temporary ? ErrorKind::kIo : ErrorKind::kInput,
          server.url() + " expected another client: status " + std::to_string(status) + ", " +
              printable(response.body())};
}

void ServerLink::Impl::read() {
  socket.async_read(buffer, [this](const Code& code, size_t) {
    if (code) return void(failure = code);
    received.push_back(beast::buffers_to_string(buffer.data()));
    buffer.consume(buffer.size());
    read();
  });
}

void ServerLink::Impl::write() {
  socket.async_write(net::buffer(unsent.front()), [this](const Code& code, size_t) {
    if (code) return void(failure = code);
    unsent.pop_front();
    if (!unsent.empty()) write();
  });
}

ServerLink::ServerLink(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// Operations under way end with the io_context, which does not call their handlers.
ServerLink::~ServerLink() = default;

Result<std::unique_ptr<ServerLink>> ServerLink::connect(const DraftingServer& server, double timeout_ms) {
  std::unique_ptr<ServerLink> link(new ServerLink(std::make_unique<Impl>(server)));
  OUTRIDER_RETURN_IF_ERROR(link->impl_->connect(timeout_ms));
  return link;
}

Status ServerLink::send(std::string message) {
  if (impl_->failure) return impl_->broken();
  impl_->unsent.push_back(std::move(message));
  if (impl_->unsent.size() == 1) impl_->write();
  impl_->io.restart();
  impl_->io.poll();
  return {};
}

Result<std::optional<std::string>> ServerLink::receive(double timeout_ms) {
  impl_->run(timeout_ms, [this] { return !impl_->received.empty() || impl_->failure; });
  if (!impl_->received.empty()) {
    std::string message = std::move(impl_->received.front());
    impl_->received.pop_front();
    return std::optional(std::move(message));
  }
  if (impl_->failure) return impl_->broken().error();
  return std::optional<std::string>();
}

void ServerLink::close(double timeout_ms) {
  impl_->run(timeout_ms, [this] { return impl_->unsent.empty() || impl_->failure; });
  if (impl_->failure) return;
  bool is_done = false;
  impl_->socket.async_close(ws::close_code::normal, [&](const Code&) { is_done = true; });
  impl_->run(timeout_ms, [&] { return is_done; });
  if (!is_done) {
    beast::get_lowest_layer(impl_->socket).close();
    impl_->run(timeout_ms, [&] { return is_done; });
  }
}

}  // namespace outrider
