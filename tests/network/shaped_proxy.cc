// SPDX-License-Identifier: Apache-2.0
#include "tests/network/shaped_proxy.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

#include "base/counter_rng.h"
#include "tests/network/frame_splitter.h"

namespace outrider {
namespace {

namespace net = boost::asio;
using Tcp = net::ip::tcp;
using Code = boost::system::error_code;
using Clock = std::chrono::steady_clock;
template <typename T>
using Task = net::awaitable<T>;

constexpr size_t kPacket = 1400;           // bytes
constexpr double kRetransmissionMs = 200;  // TCP's least timeout
constexpr size_t kMaxQueued = 1 << 20;     // bytes on their way in one direction

auto into(Code& code) { return net::redirect_error(net::use_awaitable, code); }

Clock::duration milliseconds(double ms) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(ms));
}

}  // namespace

// One direction of a connection: when which bytes arrive.
class NetworkWire {
 public:
  NetworkWire(const NetworkShape& shape, uint64_t seed) : shape_(shape), seed_(seed) {}

  // The time at which a packet that is sent now arrives. Packets keep their order.
  Clock::time_point arrival(size_t bytes) {
    const Clock::time_point now = Clock::now();
    const double sending_ms =
        shape_.bits_per_second == 0 ? 0 : 8e3 * static_cast<double>(bytes) / shape_.bits_per_second;
    free_at_ = std::max(free_at_, now) + milliseconds(sending_ms);
    double delay_ms = (shape_.round_trip_ms + shape_.jitter_ms * (2 * draw() - 1)) / 2;
    while (draw() < shape_.loss) delay_ms += kRetransmissionMs;
    arrived_at_ = std::max(arrived_at_, free_at_ + milliseconds(std::max(delay_ms, 0.0)));
    return arrived_at_;
  }

  // Uniform in [0, 1).
  double draw() { return static_cast<double>(mix64(seed_ ^ mix64(++drawn_)) >> 11) * 0x1.0p-53; }

 private:
  NetworkShape shape_;
  uint64_t seed_;
  uint64_t drawn_ = 0;
  Clock::time_point free_at_ = {}, arrived_at_ = {};
};

struct ShapedProxy::Impl {
  // A client's connection and its way on to the server.
  struct Connection {
    Connection(Tcp::socket accepted, double late)
        : client(std::move(accepted)), target(client.get_executor()), late_ms(late) {}
    Tcp::socket client, target;
    double late_ms;     // ProxyOptions::late_ms
    int64_t left = -1;  // bytes until it is cut; negative: it is not
    bool is_cut = false;

    // Ends both sides at once, without an orderly end; only the client's where the server's ends later.
    void cut() {
      is_cut = true;
      end(client);
      if (late_ms == 0) end(target);
    }
    static void end(Tcp::socket& socket) {
      Code ignored;
      socket.set_option(net::socket_base::linger(true, 0), ignored);
      socket.close(ignored);
    }
  };
  // A packet on its way.
  struct Packet {
    Clock::time_point arrival;
    std::string bytes;
  };
  struct Direction {
    void put_back(std::string rest) {
      queued += rest.size();
      packets.push_front({.arrival = Clock::now(), .bytes = std::move(rest)});
    }

    Direction(net::io_context& io, const NetworkShape& shape, uint64_t seed, bool is_to)
        : wire(shape, seed), wake(io), is_to_target(is_to) {}
    NetworkWire wire;
    std::deque<Packet> packets;
    size_t queued = 0;
    FrameSplitter frames;    // where messages matter
    net::steady_timer wake;  // of write()
    bool is_to_target = false;
    bool is_ended = false;  // nothing more is read
  };

  explicit Impl(ProxyOptions given) : options(std::move(given)), acceptor(io) {}

  Status listen();
  Task<void> accept();
  Task<void> serve(std::shared_ptr<Connection> connection, int64_t number);
  void put(Direction& way, std::string bytes) const;
  void put_on_way(Direction& way, std::string_view bytes);
  Task<void> read(std::shared_ptr<Connection> connection, Tcp::socket& from, std::shared_ptr<Direction> way);
  Task<void> write(std::shared_ptr<Connection> connection, Tcp::socket& to, std::shared_ptr<Direction> way,
                   std::atomic<int64_t>& count);

  ProxyOptions options;
  net::io_context io{1};
  Tcp::acceptor acceptor;
  int port = 0;
  std::unordered_set<Connection*> open;
  bool is_gone = false;  // nothing more is forwarded
  std::atomic<int64_t> connections = 0, cuts = 0, to_target = 0, from_target = 0;
  std::thread thread;
};

Status ShapedProxy::Impl::listen() {
  const Tcp::endpoint endpoint(net::ip::address_v4::loopback(), static_cast<uint16_t>(options.port));
  Code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(net::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
  if (!error) port = acceptor.local_endpoint(error).port();
  if (!error) return {};
  return io_error("cannot listen on 127.0.0.1 port " + std::to_string(options.port) + ": " + error.message() +
                  "; choose another --port");
}

Task<void> ShapedProxy::Impl::accept() {
  while (acceptor.is_open()) {
    Code error;
    Tcp::socket socket = co_await acceptor.async_accept(into(error));
    if (error || is_gone) continue;
    const int64_t number = connections++;
    auto connection = std::make_shared<Connection>(std::move(socket), options.late_ms);
    if (options.cut_after) connection->left = options.cut_after(number);
    net::co_spawn(io, serve(std::move(connection), number), net::detached);
  }
}

Task<void> ShapedProxy::Impl::serve(std::shared_ptr<Connection> connection, int64_t number) {
  open.insert(connection.get());
  Code error;
  Tcp::resolver resolver(io);
  const std::string port_name = std::to_string(options.target_port);
  const auto endpoints = co_await resolver.async_resolve(options.target_host, port_name, into(error));
  if (!error) co_await net::async_connect(connection->target, endpoints, into(error));
  if (!error) {
    for (Tcp::socket* socket : {&connection->client, &connection->target})
      socket->set_option(Tcp::no_delay(true), error);
    const uint64_t seed = mix64(options.seed ^ mix64(static_cast<uint64_t>(number)));
    const auto there = std::make_shared<Direction>(io, options.shape, seed, true);
    const auto back = std::make_shared<Direction>(io, options.shape, mix64(seed), false);
    net::co_spawn(io, read(connection, connection->client, there), net::detached);
    net::co_spawn(io, write(connection, connection->target, there, to_target), net::detached);
    net::co_spawn(io, read(connection, connection->target, back), net::detached);
    co_await write(connection, connection->client, back, from_target);
  }
  open.erase(connection.get());
  if (error) connection->cut();
}

void ShapedProxy::Impl::put(Direction& way, std::string bytes) const {
  if (is_gone) return;
  way.queued += bytes.size();
  const Clock::time_point arrival = way.wire.arrival(bytes.size());
  way.packets.push_back({.arrival = arrival, .bytes = std::move(bytes)});
}

// Puts what was sent on its way: as it came, or message by message where messages matter.
void ShapedProxy::Impl::put_on_way(Direction& way, std::string_view bytes) {
  if (options.duplicates == 0 && !options.watch) return put(way, std::string(bytes));
  way.frames.add(bytes);
  while (auto part = way.frames.next()) {
    const bool goes_on =
        !part->is_message || !options.watch || options.watch(way.is_to_target, part->message());
    if (part->is_message && way.wire.draw() < options.duplicates) put(way, part->bytes);
    put(way, std::move(part->bytes));
    if (goes_on) continue;
    is_gone = true;
    way.is_ended = true;
  }
}

// Reads what is sent, in packets.
Task<void> ShapedProxy::Impl::read(std::shared_ptr<Connection> connection, Tcp::socket& from,
                                   std::shared_ptr<Direction> way) {
  std::array<char, kPacket> bytes;
  net::steady_timer pause(io);
  Code error;
  while (!error) {
    const size_t count = co_await from.async_read_some(net::buffer(bytes), into(error));
    if (error) break;
    put_on_way(*way, {bytes.data(), count});
    way->wake.cancel();
    while (way->queued > kMaxQueued && !connection->is_cut) {
      Code ignored;
      pause.expires_after(std::chrono::milliseconds(10));
      co_await pause.async_wait(into(ignored));
    }
  }
  if (std::string rest = way->frames.take_rest(); !rest.empty()) put(*way, std::move(rest));
  way->is_ended = true;
  way->wake.cancel();
}

// Delivers packets when they arrive, up to the cut, and then the end of the stream.
Task<void> ShapedProxy::Impl::write(std::shared_ptr<Connection> connection, Tcp::socket& to,
                                    std::shared_ptr<Direction> way, std::atomic<int64_t>& count) {
  Code error;
  const bool may_be_late = way->is_to_target && connection->late_ms > 0;
  while (!error && (may_be_late || !connection->is_cut)) {
    if (way->packets.empty() && way->is_ended) break;
    Code ignored;
    const bool is_empty = way->packets.empty();
    const Clock::time_point now = Clock::now();
    Clock::time_point next = is_empty ? now + std::chrono::hours(1) : way->packets.front().arrival;
    if (!is_empty && connection->is_cut) next += milliseconds(connection->late_ms);
    if (next > now) {
      way->wake.expires_at(next);
      co_await way->wake.async_wait(into(ignored));
      continue;
    }
    const Packet packet = std::move(way->packets.front());
    way->packets.pop_front();
    way->queued -= packet.bytes.size();
    const auto size = static_cast<int64_t>(packet.bytes.size());
    const bool is_last = !connection->is_cut && connection->left >= 0 && connection->left <= size;
    const int64_t whole = is_last ? connection->left : size;
    if (!connection->is_cut && connection->left >= 0) connection->left -= whole;
    count += whole;
    co_await net::async_write(to, net::buffer(packet.bytes.data(), static_cast<size_t>(whole)), into(error));
    if (!is_last || connection->is_cut) continue;
    ++cuts;
    connection->cut();
    if (may_be_late) way->put_back(packet.bytes.substr(static_cast<size_t>(whole)));
  }
  Code ignored;
  to.shutdown(Tcp::socket::shutdown_send, ignored);
  if (connection->is_cut) Connection::end(to);
}

ShapedProxy::ShapedProxy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<ShapedProxy>> ShapedProxy::start(ProxyOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  OUTRIDER_RETURN_IF_ERROR(impl->listen());
  net::co_spawn(impl->io, impl->accept(), net::detached);
  impl->thread = std::thread([io = &impl->io] { io->run(); });
  return std::unique_ptr<ShapedProxy>(new ShapedProxy(std::move(impl)));
}

ShapedProxy::~ShapedProxy() {
  net::post(impl_->io, [this] {
    Code ignored;
    impl_->acceptor.close(ignored);
    for (Impl::Connection* connection : impl_->open) connection->cut();
    impl_->io.stop();
  });
  impl_->thread.join();
}

int ShapedProxy::port() const { return impl_->port; }

ShapedProxy::Counts ShapedProxy::counts() const {
  return {.connections = impl_->connections,
          .cuts = impl_->cuts,
          .bytes_to_target = impl_->to_target,
          .bytes_from_target = impl_->from_target};
}

}  // namespace outrider
