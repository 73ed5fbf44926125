// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost. The other end of OTLP over HTTP.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/environment.h"
#include "outrider/result.h"

namespace outrider {

struct CollectorAddress {
  std::string host, port, path;  // "localhost", "4318", "/v1/traces"
  bool is_secure = false;        // TLS

  // Reads "http://HOST[:PORT][/PATH]", or https with TLS; without a port 4318 or 443. Error: another form.
  static Result<CollectorAddress> parse(std::string_view url);
  std::string url() const;
};

// Reads "name=value,name=value" with values in percent-encoding. Error: another form; it has no value in it.
using CollectorHeaders = std::vector<std::pair<std::string, std::string>>;
Result<CollectorHeaders> read_collector_headers(std::string_view text);

// Sends messages in JSON to a collector of OpenTelemetry. With TLS its certificate must be of its name and of
// an authority that the system trusts, or that the variables name.
class TraceCollector {
 public:
  template <typename T>
  using Task = boost::asio::awaitable<T>;

  // Errors: wrong headers, or certificates that cannot be read.
  static Result<TraceCollector> open(boost::asio::io_context* io, CollectorAddress address,
                                     const CollectorVariables& variables);

  // Why the message was not taken; empty: it was.
  Task<std::string> send(const std::string& body);
  std::string url() const { return address_.url(); }

 private:
  TraceCollector(boost::asio::io_context* io, CollectorAddress address, CollectorHeaders headers)
      : io_(io), address_(std::move(address)), headers_(std::move(headers)) {}

  Task<std::string> send_plainly(const std::string& body);
  Task<std::string> send_securely(const std::string& body);
  template <typename Stream>
  Task<std::string> connect(Stream& stream);
  template <typename Stream>
  Task<std::string> exchange(Stream& stream, const std::string& body);

  boost::asio::io_context* io_;
  CollectorAddress address_;
  CollectorHeaders headers_;
  std::unique_ptr<boost::asio::ssl::context> tls_;  // null: plain
};

}  // namespace outrider
