// SPDX-License-Identifier: Apache-2.0
#include "server/fleet/engine_connection.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <limits>

namespace outrider {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Code = boost::system::error_code;

EngineConnection::EngineConnection(const asio::any_io_executor& executor) : socket_(executor) {
  parser_.body_limit(std::numeric_limits<uint64_t>::max());
}

EngineConnection::Task<bool> EngineConnection::ask(const std::string& socket, const std::string& request) {
  Code error;
  const asio::local::stream_protocol::endpoint endpoint(socket);
  co_await socket_.async_connect(endpoint, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return false;
  co_await asio::async_write(socket_, asio::buffer(request),
                             asio::redirect_error(asio::use_awaitable, error));
  // An engine that refuses a request may answer before it has read all of it.
  co_await http::async_read_header(socket_, buffer_, parser_,
                                   asio::redirect_error(asio::use_awaitable, error));
  co_return !error;
}

EngineConnection::Task<std::optional<std::string>> EngineConnection::read_some() {
  while (!parser_.is_done()) {
    auto& body = parser_.get().body();
    body.data = bytes_.data();
    body.size = bytes_.size();
    body.more = true;
    Code error;
    co_await http::async_read_some(socket_, buffer_, parser_,
                                   asio::redirect_error(asio::use_awaitable, error));
    if (error && error != http::error::need_buffer) co_return std::nullopt;
    const size_t count = bytes_.size() - body.size;
    if (count > 0) co_return std::string(bytes_.data(), count);
  }
  co_return std::string();
}

void EngineConnection::close() {
  Code ignored;
  socket_.close(ignored);
}

std::string EngineConnection::header(std::string_view name) const {
  const auto value = parser_.get()[boost::beast::string_view(name.data(), name.size())];
  return {value.data(), value.size()};
}

std::optional<uint64_t> EngineConnection::length() const {
  const auto length = parser_.content_length();
  return length ? std::optional<uint64_t>(*length) : std::nullopt;
}

}  // namespace outrider
