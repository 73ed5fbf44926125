// SPDX-License-Identifier: Apache-2.0
#include "remote/client/server_link.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <utility>
#include <variant>

#include "asio/client_tls.h"
#include "base/clock.h"
#include "base/quote.h"
#include "remote/protocol/messages.h"

namespace outrider {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace ws = boost::beast::websocket;
namespace ssl = boost::asio::ssl;
using Code = boost::system::error_code;
using PlainSocket = ws::stream<beast::tcp_stream>;
using SecureSocket = ws::stream<beast::ssl_stream<beast::tcp_stream>>;

std::chrono::microseconds microseconds(double ms) {
  return std::chrono::microseconds(static_cast<int64_t>(std::max(ms, 0.0) * 1e3));
}

}  // namespace

struct ServerLink::Impl {
  explicit Impl(DraftingServer to) : server(std::move(to)), socket(make_socket()) {}

  Status connect(double timeout_ms, double idle_ms);
  Status trust();
  Status secure(double timeout_ms);
  Status handshake(double timeout_ms, double idle_ms);
  Error refusal(const ws::response_type& response) const;
  // Runs until `is_done` or the end of the time. False: the time ended first.
  bool run(double timeout_ms, const std::function<bool()>& is_done);
  // Runs one operation, which start(handler) begins, to its end.
  template <typename Start>
  Code finish(double timeout_ms, Start&& start);
  void read();
  void write();
  Status broken() const {
    return io_error("the connection to " + server.url() + " broke: " + failure.message());
  }

  using Socket = std::variant<PlainSocket, SecureSocket>;
  Socket make_socket() {
    return server.is_secure ? Socket(std::in_place_type<SecureSocket>, io, tls)
                            : Socket(std::in_place_type<PlainSocket>, io);
  }
  // Calls call(socket) with a WebSocket of either kind.
  template <typename Call>
  void use_socket(Call&& call) {
    std::visit(std::forward<Call>(call), socket);
  }
  beast::tcp_stream& stream() {
    return std::visit([](auto& any) -> beast::tcp_stream& { return beast::get_lowest_layer(any); }, socket);
  }

  DraftingServer server;
  net::io_context io{1};
  ssl::context tls = client_tls();  // a socket takes over what it says when the socket is made
  Socket socket;
  beast::flat_buffer buffer;
  std::deque<std::string> received;
  std::deque<std::string> unsent;  // the first is being sent
  Code failure;                    // of reading or writing
};

bool ServerLink::Impl::run(double timeout_ms, const std::function<bool()>& is_done) {
  const double end_ms = now_ms() + timeout_ms;
  io.restart();
  io.poll();  // what has come is taken even if there is no time to wait
  while (!is_done()) {
    const double left_ms = end_ms - now_ms();
    if (left_ms <= 0) return false;
    if (io.run_one_for(microseconds(left_ms)) == 0 && io.stopped()) return is_done();
  }
  return true;
}

template <typename Start>
Code ServerLink::Impl::finish(double timeout_ms, Start&& start) {
  Code error;
  bool is_done = false;
  start([&](const Code& code, const auto&...) {
    error = code;
    is_done = true;
  });
  return run(timeout_ms + 1000, [&] { return is_done; }) ? error : Code(net::error::timed_out);
}

Status ServerLink::Impl::connect(double timeout_ms, double idle_ms) {
  OUTRIDER_RETURN_IF_ERROR(trust());
  Code error;
  net::ip::tcp::resolver resolver(io);
  const auto endpoints = resolver.resolve(server.host, server.port, error);
  if (error) return io_error("cannot find " + server.url() + ": " + error.message());
  stream().expires_after(microseconds(timeout_ms));
  error = finish(timeout_ms, [&](auto done) { stream().async_connect(endpoints, done); });
  if (error) return io_error("cannot reach " + server.url() + ": " + error.message());
  stream().socket().set_option(net::ip::tcp::no_delay(true), error);
  OUTRIDER_RETURN_IF_ERROR(secure(timeout_ms));
  stream().expires_never();
  return handshake(timeout_ms, idle_ms);
}

// Reads the certificates by which a server is known.
Status ServerLink::Impl::trust() {
  if (!server.is_secure) return {};
  Code error;
  tls.set_default_verify_paths(error);
  if (!server.authority.empty()) tls.load_verify_file(server.authority.string(), error);
  if (!error) return {};
  return input_error("expected certificates in PEM in " + server.authority.string() + ": " + error.message());
}

Status ServerLink::Impl::secure(double timeout_ms) {
  auto* const secured = std::get_if<SecureSocket>(&socket);
  if (secured == nullptr) return {};
  auto& layer = secured->next_layer();
  SSL_set_tlsext_host_name(layer.native_handle(), server.host.c_str());
  layer.set_verify_callback(ssl::host_name_verification(server.host));
  const Code error =
      finish(timeout_ms, [&](auto done) { layer.async_handshake(ssl::stream_base::client, done); });
  if (!error) return {};
  const std::string message = "cannot talk to " + server.url() + " over TLS: " + error.message();
  if (SSL_get_verify_result(layer.native_handle()) == X509_V_OK) return io_error(message);
  return input_error(message + "; --server-ca names the certificate of a private authority");
}

Status ServerLink::Impl::handshake(double timeout_ms, double idle_ms) {
  ws::stream_base::timeout timeout = ws::stream_base::timeout::suggested(beast::role_type::client);
  timeout.handshake_timeout = microseconds(timeout_ms);
  if (idle_ms > 0) {
    timeout.idle_timeout = microseconds(idle_ms);
    timeout.keep_alive_pings = true;
  }
  const std::string host = server.url().substr(server.url().find("//") + 2);
  ws::response_type response;
  Code error;
  use_socket([&](auto& any) {
    any.set_option(timeout);
    any.set_option(ws::stream_base::decorator([this](ws::request_type& request) {
      request.set(beast::http::field::sec_websocket_protocol, kDraftingProtocol);
      if (!server.api_key.empty()) request.set(beast::http::field::authorization, "Bearer " + server.api_key);
    }));
    any.read_message_max(kMaxServerMessage);
    any.binary(true);
    error =
        finish(timeout_ms, [&](auto done) { any.async_handshake(response, host, server.target(), done); });
  });
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
  const auto on_read = [this](const Code& code, size_t) {
    if (code) return void(failure = code);
    received.push_back(beast::buffers_to_string(buffer.data()));
    buffer.consume(buffer.size());
    read();
  };
  use_socket([&](auto& any) { any.async_read(buffer, on_read); });
}

void ServerLink::Impl::write() {
  const auto on_written = [this](const Code& code, size_t) {
    if (code) return void(failure = code);
    unsent.pop_front();
    if (!unsent.empty()) write();
  };
  use_socket([&](auto& any) { any.async_write(net::buffer(unsent.front()), on_written); });
}

ServerLink::ServerLink(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// Operations under way end with the io_context, which does not call their handlers.
ServerLink::~ServerLink() = default;

Result<std::unique_ptr<ServerLink>> ServerLink::connect(const DraftingServer& server, double timeout_ms,
                                                        double idle_ms) {
  std::unique_ptr<ServerLink> link(new ServerLink(std::make_unique<Impl>(server)));
  OUTRIDER_RETURN_IF_ERROR(link->impl_->connect(timeout_ms, idle_ms));
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
  const auto on_closed = [&](const Code&) { is_done = true; };
  impl_->use_socket([&](auto& any) { any.async_close(ws::close_code::normal, on_closed); });
  impl_->run(timeout_ms, [&] { return is_done; });
  if (!is_done) {
    impl_->stream().close();
    impl_->run(timeout_ms, [&] { return is_done; });
  }
}

}  // namespace outrider
