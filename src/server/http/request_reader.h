// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/api/api_error.h"
#include "server/http/connection.h"
#include "server/http/gate.h"
#include "server/http/gzip_body.h"

namespace outrider {

// Reads one request of a connection within the limits: first its header, then, if it is wanted, its body.
class RequestReader {
 public:
  explicit RequestReader(Connection* connection);

  using Message = boost::beast::http::request<boost::beast::http::string_body>;

  // These two return false if reading failed; failure() then says why.
  Connection::Task<bool> read_header();
  // `limit`: bytes of the body.
  Connection::Task<bool> read_body(size_t limit);
  // The error for the client; nullopt: the connection is broken, so no answer is possible.
  const std::optional<ApiError>& failure() const { return failure_; }

  // These are valid once the header was read.
  RequestHeader header() const;
  const Message& message() const { return parser_.get(); }
  bool keeps_alive() const { return parser_.keep_alive(); }
  // The error for a target or header above its limit.
  std::optional<ApiError> check_sizes() const;
  // Whether the whole request was read.
  bool is_done() const { return parser_.is_done(); }
  // Whether the body is small enough to be discarded, so that a refused request may keep its connection.
  bool is_short() const;
  // Discards the body of a refused request. False: the connection must close.
  Connection::Task<bool> skip_body();
  std::string take_body() { return std::move(parser_.get().body()); }
  std::shared_ptr<BodyAccount> take_account() { return std::move(account_); }

 private:
  using Code = boost::system::error_code;

  Connection::Task<Code> advance();
  Code parse();
  Connection::Task<Code> receive();
  bool is_framing_too_long() const;
  std::optional<ApiError> error_of(const Code& error, bool in_header) const;
  // Whether the body is known to be longer than `limit`, which failure() then says.
  bool is_too_long(size_t limit);

  Connection* connection_;
  boost::beast::http::request_parser<boost::beast::http::string_body> parser_;
  size_t extension_bytes_ = 0;  // of all chunks of the body
  std::function<void(uint64_t, boost::beast::string_view, Code&)> on_chunk_;
  std::optional<ApiError> failure_;
  std::shared_ptr<BodyAccount> account_;
};

}  // namespace outrider
