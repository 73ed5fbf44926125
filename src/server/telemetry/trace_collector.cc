// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/trace_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <chrono>
#include <optional>

#include "asio/client_tls.h"
#include "base/quote.h"
#include "base/white_space.h"
#include "server/access/request_header.h"

namespace outrider {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

constexpr auto kSendTime = std::chrono::seconds(5);
constexpr std::string_view kPlainPort = "4318", kSecurePort = "443";

bool is_header_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !name.empty() && std::ranges::all_of(name, is_allowed);
}

bool is_header_value(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return c >= 0x20 && c < 0x7f; });
}

bool is_name(const std::string& host) {
  error_code error;
  asio::ip::make_address(host, error);
  return error.failed();
}

// Certificates of the system, and of a file where one is named.
Result<std::unique_ptr<ssl::context>> trusting_context(const std::filesystem::path& certificate) {
  auto context = std::make_unique<ssl::context>(client_tls());
  error_code error;
  context->set_default_verify_paths(error);
  if (!certificate.empty()) context->load_verify_file(certificate.string(), error);
  if (!error) return context;
  return input_error(fmt::format("OTEL_EXPORTER_OTLP_CERTIFICATE: expected certificates in PEM in {}: {}",
                                 certificate.string(), error.message()));
}

}  // namespace

Result<CollectorAddress> CollectorAddress::parse(std::string_view url) {
  constexpr std::string_view kSchemes[] = {"http://", "https://"};
  std::string_view rest = url;
  const auto* const scheme =
      std::ranges::find_if(kSchemes, [&](std::string_view start) { return url.starts_with(start); });
  const bool has_scheme = scheme != std::end(kSchemes), is_secure = scheme == &kSchemes[1];
  if (has_scheme) rest.remove_prefix(scheme->size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view place = rest.substr(0, slash);
  CollectorAddress address{.host = {},
                           .port = std::string(is_secure ? kSecurePort : kPlainPort),
                           .path = std::string(rest.substr(slash)),
                           .is_secure = is_secure};
  if (address.path.empty() || address.path == "/") address.path = "/v1/traces";
  const size_t bracket = place.find(']');
  const size_t colon = place.find(':', bracket == place.npos ? 0 : bracket);
  if (colon != place.npos) {
    address.port = place.substr(colon + 1);
    place = place.substr(0, colon);
  }
  if (place.starts_with('[') && place.ends_with(']')) place = place.substr(1, place.size() - 2);
  address.host = place;
  const bool has_port = !address.port.empty() && address.port.size() <= 5 &&
                        std::ranges::all_of(address.port, [](char c) { return c >= '0' && c <= '9'; });
  if (has_scheme && has_port && !address.host.empty()) return address;
  return usage_error(
      "expected the address of a collector such as http://127.0.0.1:4318 or https://otlp.example.org, "
      "found " +
      quote(url));
}

std::string CollectorAddress::url() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}{}", is_secure ? "https" : "http", is_v6 ? "[" : "", host,
                     is_v6 ? "]" : "", port, path);
}

Result<CollectorHeaders> read_collector_headers(std::string_view text) {
  CollectorHeaders headers;
  while (!text.empty()) {
    const std::string_view pair = trimmed(text.substr(0, text.find(',')));
    text.remove_prefix(std::min(text.find(','), text.size() - 1) + 1);
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = trimmed(pair.substr(0, equals));
    const std::optional<std::string> value =
        equals == pair.size() ? std::nullopt : percent_decoded(trimmed(pair.substr(equals + 1)));
    if (!is_header_name(name) || !value || !is_header_value(*value)) {
      return input_error(
          fmt::format("OTEL_EXPORTER_OTLP_HEADERS: expected name=value pairs with commas between them, found "
                      "another form as number {}",
                      headers.size() + 1));
    }
    headers.emplace_back(name, *value);
  }
  return headers;
}

Result<TraceCollector> TraceCollector::open(asio::io_context* io, CollectorAddress address,
                                            const CollectorVariables& variables) {
  OUTRIDER_TRY(CollectorHeaders headers, read_collector_headers(variables.headers));
  TraceCollector collector(io, std::move(address), std::move(headers));
  if (!collector.address_.is_secure) return collector;
  OUTRIDER_TRY(collector.tls_, trusting_context(variables.certificate));
  return collector;
}

template <typename Stream>
TraceCollector::Task<std::string> TraceCollector::connect(Stream& stream) {
  error_code error;
  asio::ip::tcp::resolver resolver(*io_);
  const auto places = co_await resolver.async_resolve(address_.host, address_.port,
                                                      asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return error.message();
  beast::get_lowest_layer(stream).expires_after(kSendTime);
  co_await beast::get_lowest_layer(stream).async_connect(places,
                                                         asio::redirect_error(asio::use_awaitable, error));
  co_return error ? error.message() : std::string();
}

template <typename Stream>
TraceCollector::Task<std::string> TraceCollector::exchange(Stream& stream, const std::string& body) {
  http::request<http::string_body> request(http::verb::post, address_.path, 11, body);
  for (const auto& [name, value] : headers_) request.set(name, value);
  request.set(http::field::host, address_.host + ":" + address_.port);
  request.set(http::field::content_type, "application/json");
  request.keep_alive(false);
  request.prepare_payload();
  error_code error;
  co_await http::async_write(stream, request, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return error.message();
  beast::flat_buffer buffer;
  http::response<http::string_body> response;
  co_await http::async_read(stream, buffer, response, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return error.message();
  co_return response.result_int() < 300 ? std::string() : fmt::format("status {}", response.result_int());
}

TraceCollector::Task<std::string> TraceCollector::send_plainly(const std::string& body) {
  beast::tcp_stream stream(*io_);
  const std::string failure = co_await connect(stream);
  if (!failure.empty()) co_return failure;
  co_return co_await exchange(stream, body);
}

TraceCollector::Task<std::string> TraceCollector::send_securely(const std::string& body) {
  beast::ssl_stream<beast::tcp_stream> stream(*io_, *tls_);
  if (is_name(address_.host)) SSL_set_tlsext_host_name(stream.native_handle(), address_.host.c_str());
  stream.set_verify_callback(ssl::host_name_verification(address_.host));
  const std::string failure = co_await connect(stream);
  if (!failure.empty()) co_return failure;
  error_code error;
  co_await stream.async_handshake(ssl::stream_base::client, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return "TLS: " + error.message();
  co_return co_await exchange(stream, body);
}

TraceCollector::Task<std::string> TraceCollector::send(const std::string& body) {
  return address_.is_secure ? send_securely(body) : send_plainly(body);
}

}  // namespace outrider
