// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace outrider {

// One request to an engine, over its UNIX socket.
class EngineConnection {
 public:
  template <typename T>
  using Task = boost::asio::awaitable<T>;

  explicit EngineConnection(const boost::asio::any_io_executor& executor);

  // Connects, writes the request and reads the header of its answer. False: the engine is gone.
  Task<bool> ask(const std::string& socket, const std::string& request);
  // The next bytes of the answer's body; empty: it has ended; nullopt: the engine is gone.
  Task<std::optional<std::string>> read_some();
  // Ends what waits. The engine gives up the request.
  void close();

  // These are valid once ask() has returned true.
  int status() const { return parser_.get().result_int(); }
  std::string header(std::string_view name) const;  // empty: there is none
  std::optional<uint64_t> length() const;

 private:
  boost::asio::local::stream_protocol::socket socket_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::response_parser<boost::beast::http::buffer_body> parser_;
  std::array<char, 16 << 10> bytes_;
};

}  // namespace outrider
