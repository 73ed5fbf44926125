// SPDX-License-Identifier: Apache-2.0
// The bytes of a whole connection, through a pair of sockets, to a server with a small model: HTTP, its
// pipelining, bodies of every route, and the WebSocket of clients that draft.
#include <sys/socket.h>

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>

#include "engine/engine_parts.h"
#include "server/http/request_handler.h"
#include "server/http/service.h"

namespace {

using outrider::Connection;
namespace asio = boost::asio;
using Socket = asio::ip::tcp::socket;

outrider::EngineOptions small_engine() {
  outrider::EngineOptions options;
  options.model = OUTRIDER_SOURCE_DIR "/tests/data/models/llama";
  options.threads = 1;
  options.max_batch = 4;
  options.offered_nodes = 4;
  return options;
}

// The shared state of a server, without a listener.
class FuzzedService {
 public:
  FuzzedService() {
    service_.calls.set_metrics(&service_.metrics);
    service_.options.drafting_nodes = small_engine().offered_nodes;
    service_.chat_html = [] { return std::string_view("<!doctype html>"); };
    service_.workers = std::make_unique<outrider::PreparationWorkers>();
    std::atomic<bool> is_open = false;
    service_.engine = std::make_unique<outrider::EngineLoop>(
        [] { return outrider::Engine::open(small_engine()); },
        outrider::EngineLoop::Events{.opened =
                                         [&](const outrider::Engine& engine) {
                                           service_.model = outrider::served_model(engine.parts());
                                           service_.model.name = "m";
                                           is_open = true;
                                         },
                                     .failed = [](const outrider::Error&) { __builtin_trap(); },
                                     .has_updates =
                                         [this] {
                                           asio::post(io_, [this] {
                                             service_.calls.deliver(service_.engine->take_updates());
                                           });
                                         }});
    while (!is_open) std::this_thread::yield();
    service_.phase = outrider::Phase::kReady;
  }

  // Serves a client that sends these bytes and closes its side.
  void serve(std::string_view bytes) {
    // Counts of earlier inputs would make `GET /metrics` look new.
    service_.metrics = outrider::ServerMetrics();
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) __builtin_trap();
    Socket served(io_), client(io_);
    served.assign(asio::ip::tcp::v4(), ends[0]);
    client.assign(asio::ip::tcp::v4(), ends[1]);
    const auto end = [](const std::exception_ptr& failure) {
      if (failure != nullptr) __builtin_trap();
    };
    asio::co_spawn(io_, answer(std::make_shared<Connection>(&service_, std::move(served), "client")), end);
    asio::co_spawn(io_, send(client, bytes), end);
    asio::co_spawn(io_, receive(client), end);
    io_.restart();
    io_.run();
    // A worker may still hold a body whose client has left.
    while (service_.bodies_bytes != 0) std::this_thread::yield();
    if (service_.connections != 0) __builtin_trap();
  }

 private:
  static Connection::Task<void> answer(std::shared_ptr<Connection> connection) {
    bool goes_on = co_await connection->wait_for_bytes(std::chrono::seconds(1));
    while (goes_on) {
      goes_on = co_await outrider::handle_request(*connection);
      if (goes_on) goes_on = co_await connection->wait_for_bytes(std::chrono::seconds(1));
    }
  }

  // The client's side, in the server's thread: another thread would cost more than most requests.
  static Connection::Task<void> send(Socket& client, std::string_view bytes) {
    boost::system::error_code code;
    co_await asio::async_write(client, asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, code));
    client.shutdown(Socket::shutdown_send, code);
  }

  static Connection::Task<void> receive(Socket& client) {
    std::array<char, 4096> answer;
    boost::system::error_code code;
    while (!code) {
      co_await client.async_read_some(asio::buffer(answer), asio::redirect_error(asio::use_awaitable, code));
    }
  }

  asio::io_context io_{1};
  outrider::Service service_{.options = {},
                             .limits = {},
                             .hosts = outrider::AllowedHosts("127.0.0.1", {}, {}),
                             .keys = {},
                             .tls = nullptr,
                             .chat_html = {},
                             .load_stage = nullptr,
                             .responses = outrider::ResponseStore(1 << 20),
                             .model = {},
                             .vocabulary = {},
                             .metrics = {},
                             .calls = outrider::LiveCalls({.calls = 8, .stream_bytes = 256 << 10}),
                             .drafting = {},
                             .workers = nullptr,
                             .engine = nullptr,
                             .max_batch = 4};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const service = new FuzzedService;  // its threads live as long as the program
  service->serve({reinterpret_cast<const char*>(data), size});
  return 0;
}
