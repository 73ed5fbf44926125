// SPDX-License-Identifier: Apache-2.0
#include "loadtest/http_client.h"

#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace outrider {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = net::ip::tcp;
using Code = boost::system::error_code;

constexpr size_t kPiece = 64 << 10;  // bytes per read

auto into(Code& code) { return net::redirect_error(net::use_awaitable, code); }

HttpEnd failure(HttpEndKind kind, const Code& code, bool cancelled) {
  if (cancelled) return {HttpEndKind::kCancelled, "cancelled"};
  if (code == beast::error::timeout) return {HttpEndKind::kTimeout, "timed out"};
  return {kind, code.message()};
}

}  // namespace

struct HttpClient::Impl {
  struct Connection {
    explicit Connection(net::io_context& io) : stream(io) {}
    beast::tcp_stream stream;
    beast::flat_buffer buffer;
    bool is_new = true;
  };

  net::io_context io{1};
  Tcp::resolver::results_type endpoints;
  std::string host, root, api_key;
  std::vector<std::unique_ptr<Connection>> idle;
  std::set<Connection*> busy;
  std::set<net::steady_timer*> timers;
  int64_t under_way = 0;
  uint64_t cancels = 0;  // number of calls of cancel_all()

  http::request<http::string_body> message(const HttpRequest& request) const {
    http::request<http::string_body> message(http::string_to_verb(request.method), root + request.path, 11);
    message.set(http::field::host, host);
    message.set(http::field::user_agent, "outrider");
    message.set(http::field::accept, "text/event-stream, application/json, text/plain");
    if (!api_key.empty()) message.set(http::field::authorization, "Bearer " + api_key);
    if (request.body.empty()) return message;
    message.set(http::field::content_type, "application/json");
    message.body() = request.body;
    message.prepare_payload();
    return message;
  }

  // Reads one response. `began` becomes true with its first byte. Returns whether the connection can be used
  // again.
  net::awaitable<bool> read(Connection& connection, HttpHandler& handler, bool& began, HttpEnd& end) {
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    std::vector<char> piece(kPiece);
    std::string body;
    bool is_announced = false;
    while (!parser.is_done()) {
      Code code;
      const size_t count =
          co_await connection.stream.async_read_some(connection.buffer.prepare(kPiece), into(code));
      const double at_ms = now_ms();
      connection.buffer.commit(count);
      began = began || count > 0;
      body.clear();
      Code parsed;
      while (connection.buffer.size() > 0 && !parser.is_done() && !parsed) {
        parser.get().body().data = piece.data();
        parser.get().body().size = piece.size();
        connection.buffer.consume(parser.put(connection.buffer.data(), parsed));
        if (parser.is_header_done()) body.append(piece.data(), piece.size() - parser.get().body().size);
        if (parsed == http::error::need_buffer) parsed = {};
      }
      if (code == net::error::eof && parser.got_some() && (!parsed || parsed == http::error::need_more)) {
        parsed = {};
        parser.put_eof(parsed);
      }
      if (parser.is_header_done() && !std::exchange(is_announced, true)) {
        const auto type = parser.get()[http::field::content_type];
        handler.on_status(static_cast<int>(parser.get().result_int()), {type.data(), type.size()});
      }
      if (!body.empty() && !handler.on_body(body, at_ms)) {
        end = {HttpEndKind::kCancelled, "not wanted any more"};
        co_return false;
      }
      if (parsed && parsed != http::error::need_more) {
        end = {HttpEndKind::kBroken, parsed.message()};
        co_return false;
      }
      if (code && !parser.is_done()) {
        end = failure(HttpEndKind::kBroken, code, false);
        co_return false;
      }
    }
    end = {};
    co_return parser.keep_alive() && connection.buffer.size() == 0;
  }

  std::unique_ptr<Connection> take() {
    if (idle.empty()) return std::make_unique<Connection>(io);
    std::unique_ptr<Connection> connection = std::move(idle.back());
    idle.pop_back();
    return connection;
  }

  // False: the connection was idle before and turned out to be closed. True: the request has ended otherwise.
  net::awaitable<bool> attempt(const HttpRequest& request, HttpHandler& handler, double deadline_ms,
                               uint64_t cancels_before, HttpEnd& end) {
    if (cancels != cancels_before) {
      end = {HttpEndKind::kCancelled, "cancelled"};
      co_return true;
    }
    std::unique_ptr<Connection> connection = take();
    const bool was_new = std::exchange(connection->is_new, false);
    busy.insert(connection.get());
    const double left_ms = std::max(deadline_ms - now_ms(), 1.0);
    connection->stream.expires_after(std::chrono::microseconds(static_cast<int64_t>(1e3 * left_ms)));
    Code code;
    if (was_new) co_await connection->stream.async_connect(endpoints, into(code));
    bool began = false, is_reusable = false;
    if (code) {
      end = failure(HttpEndKind::kNotOpened, code, cancels != cancels_before);
    } else {
      connection->stream.socket().set_option(Tcp::no_delay(true), code);
      const auto outgoing = message(request);
      co_await http::async_write(connection->stream, outgoing, into(code));
      if (code) {
        end = failure(HttpEndKind::kBroken, code, cancels != cancels_before);
      } else {
        is_reusable = co_await read(*connection, handler, began, end);
        if (cancels != cancels_before) end = {HttpEndKind::kCancelled, "cancelled"};
      }
    }
    busy.erase(connection.get());
    connection->stream.expires_never();
    if (is_reusable) idle.push_back(std::move(connection));
    co_return was_new || began || end.kind != HttpEndKind::kBroken;
  }

  net::awaitable<void> exchange(HttpRequest request, std::shared_ptr<HttpHandler> handler,
                                uint64_t cancels_before) {
    const double deadline_ms = now_ms() + request.timeout_ms;
    HttpEnd end;
    bool is_done = false;
    while (!is_done) is_done = co_await attempt(request, *handler, deadline_ms, cancels_before, end);
    handler->on_end(end, now_ms());
    --under_way;
  }

  net::awaitable<void> wait(double ms, std::function<void()> call, uint64_t cancels_before) {
    net::steady_timer timer(io);
    timer.expires_after(std::chrono::microseconds(static_cast<int64_t>(1e3 * ms)));
    timers.insert(&timer);
    Code code;
    co_await timer.async_wait(into(code));
    timers.erase(&timer);
    if (!code && cancels == cancels_before) call();
    --under_way;
  }
};

Result<std::unique_ptr<HttpClient>> HttpClient::open(const ServerAddress& server, std::string api_key) {
  auto impl = std::make_unique<Impl>();
  Code code;
  impl->endpoints = Tcp::resolver(impl->io).resolve(server.host, server.port, code);
  if (code) return io_error(fmt::format("{}: {}; is the name right?", server.text(), code.message()));
  const bool is_ipv6 = server.host.find(':') != std::string::npos;
  impl->host = fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", server.host, is_ipv6 ? "]" : "", server.port);
  impl->root = server.root;
  impl->api_key = std::move(api_key);
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(impl)));
}

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpClient::~HttpClient() = default;

void HttpClient::send(HttpRequest request, std::shared_ptr<HttpHandler> handler) {
  ++impl_->under_way;
  net::co_spawn(impl_->io, impl_->exchange(std::move(request), std::move(handler), impl_->cancels),
                net::detached);
}

void HttpClient::after(double ms, std::function<void()> call) {
  ++impl_->under_way;
  net::co_spawn(impl_->io, impl_->wait(ms, std::move(call), impl_->cancels), net::detached);
}

void HttpClient::cancel_all() {
  ++impl_->cancels;
  for (Impl::Connection* connection : impl_->busy) connection->stream.close();
  for (net::steady_timer* timer : impl_->timers) timer->cancel();
}

void HttpClient::run(const std::function<void()>& on_interrupt) {
  impl_->io.restart();
  {
    net::signal_set signals(impl_->io, SIGINT, SIGTERM);
    signals.async_wait([&](const Code& code, int) {
      if (code) return;
      signals.clear();
      on_interrupt();
    });
    while (impl_->under_way > 0) impl_->io.run_one();
  }
  impl_->io.poll();  // lets the wait for signals end
}

}  // namespace outrider
