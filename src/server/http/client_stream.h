// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/beast/websocket/teardown.hpp>
#include <cstddef>
#include <utility>
#include <variant>

namespace outrider {

// The bytes of one client, plain or in TLS: a stream for the operations of Asio and Beast.
class ClientStream {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;  // of TCP or of a UNIX socket
  using SecureSocket = boost::beast::ssl_stream<Socket>;
  using executor_type = Socket::executor_type;
  using Code = boost::system::error_code;

  // `tls` is the server's certificate; null: plain.
  ClientStream(Socket socket, boost::asio::ssl::context* tls) : layer_(std::move(socket)) {
    if (tls == nullptr) return;
    Socket plain = std::move(std::get<Socket>(layer_));
    layer_.emplace<SecureSocket>(std::move(plain), *tls);
  }

  executor_type get_executor() { return socket().get_executor(); }
  Socket& socket() {
    SecureSocket* const secure = this->secure();
    return secure == nullptr ? std::get<Socket>(layer_) : secure->next_layer();
  }
  // Null: plain.
  SecureSocket* secure() { return std::get_if<SecureSocket>(&layer_); }

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    const auto start = [this](auto handler, const Buffers& space) {
      std::visit([&](auto& layer) { layer.async_read_some(space, std::move(handler)); }, layer_);
    };
    return boost::asio::async_initiate<Token, void(Code, size_t)>(start, token, buffers);
  }

  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    const auto start = [this](auto handler, const Buffers& bytes) {
      std::visit([&](auto& layer) { layer.async_write_some(bytes, std::move(handler)); }, layer_);
    };
    return boost::asio::async_initiate<Token, void(Code, size_t)>(start, token, buffers);
  }

  // Beast calls these at the end of a WebSocket, and when its time is over.
  template <typename Handler>
  friend void async_teardown(boost::beast::role_type role, ClientStream& stream, Handler&& handler) {
    using boost::beast::websocket::async_teardown;
    std::visit([&](auto& layer) { async_teardown(role, layer, std::forward<Handler>(handler)); },
               stream.layer_);
  }
  friend void teardown(boost::beast::role_type role, ClientStream& stream, Code& error) {
    using boost::beast::websocket::teardown;
    std::visit([&](auto& layer) { teardown(role, layer, error); }, stream.layer_);
  }
  friend void beast_close_socket(ClientStream& stream) {
    Code ignored;
    stream.socket().close(ignored);
  }

 private:
  std::variant<Socket, SecureSocket> layer_;
};

}  // namespace outrider
