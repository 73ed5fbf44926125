// SPDX-License-Identifier: Apache-2.0
#include "server/http/forwarded_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <utility>

#include "server/fleet/engine_connection.h"
#include "server/fleet/fleet_place.h"

namespace outrider {
namespace {

namespace asio = boost::asio;

constexpr auto kAskAgain = std::chrono::milliseconds(50);
constexpr auto kFirstNotice = std::chrono::seconds(1);
constexpr auto kNotices = std::chrono::seconds(2);  // between two of them
constexpr auto kUntilWoken = std::chrono::hours(1);
constexpr size_t kMostPending = 1 << 20;    // bytes that the client has not taken
constexpr size_t kMostWhole = 64ULL << 20;  // of an answer that is read as a whole
constexpr std::array<std::string_view, 3> kPassedHeaders = {"Retry-After", "WWW-Authenticate",
                                                            "X-Accel-Buffering"};

}  // namespace

// The answer of an engine while it comes. A second coroutine reads it, so that the client's coroutine
// notices when the client goes away.
struct EngineAnswer {
  explicit EngineAnswer(const asio::any_io_executor& executor) : engine(executor), room(executor) {}

  EngineConnection engine;
  asio::steady_timer room;  // wakes the reader when the client has taken bytes
  std::string pending;      // bytes of the body
  bool has_header = false, is_done = false, is_broken = false;
  bool is_closed = false;  // nobody wants the rest
  Connection* waiter = nullptr;

  void wake() const {
    if (waiter != nullptr) waiter->wake();
  }
  // The next bytes for the client; of events whole ones, so that an error may follow them.
  std::string take(bool is_events) {
    constexpr std::string_view kEventEnd = "\n\n";
    const size_t end = pending.rfind(kEventEnd);
    const bool is_all = !is_events || is_done || pending.size() > kMostPending;
    const size_t count = is_all ? pending.size() : end == std::string::npos ? 0 : end + kEventEnd.size();
    std::string bytes = pending.substr(0, count);
    pending.erase(0, count);
    room.cancel();
    return bytes;
  }
};

// Ends the reading however the client's coroutine ends.
class EngineAnswerGuard {
 public:
  explicit EngineAnswerGuard(EngineAnswer* answer) : answer_(answer) {}
  ~EngineAnswerGuard() {
    answer_->is_closed = true;
    answer_->waiter = nullptr;
    answer_->engine.close();
    answer_->room.cancel();
  }
  EngineAnswerGuard(const EngineAnswerGuard&) = delete;
  EngineAnswerGuard& operator=(const EngineAnswerGuard&) = delete;

 private:
  EngineAnswer* answer_;
};

namespace {

Connection::Task<void> read_answer(std::shared_ptr<EngineAnswer> answer, std::string socket,
                                   std::string request) {
  answer->has_header = co_await answer->engine.ask(socket, request);
  answer->is_broken = !answer->has_header;
  answer->wake();
  while (answer->has_header && !answer->is_closed && !answer->is_done && !answer->is_broken) {
    const std::optional<std::string> bytes = co_await answer->engine.read_some();
    answer->is_broken = !bytes.has_value();
    answer->is_done = bytes && bytes->empty();
    if (bytes) answer->pending += *bytes;
    answer->wake();
    while (answer->pending.size() > kMostPending && !answer->is_closed) {
      boost::system::error_code ignored;
      answer->room.expires_after(kUntilWoken);
      co_await answer->room.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
  }
}

// The path and query that the client asked for, without --root-path.
std::string_view engine_target(const Exchange& exchange) {
  std::string_view target = exchange.header.target;
  const std::string& root = exchange.connection->service().options.root_path;
  if (!root.empty() && target.starts_with(root + "/")) target.remove_prefix(root.size());
  return target;
}

void add_header(std::string& text, std::string_view name, std::string_view value) {
  if (!value.empty()) text += fmt::format("{}: {}\r\n", name, value);
}

// The first lines of a request to an engine.
std::string request_head(const Exchange& exchange) {
  const RequestHeader& header = exchange.header;
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: {}\r\n",
                                 header.method == "HEAD" ? "GET" : header.method, engine_target(exchange),
                                 exchange.client_id);
  if (header.trace) add_header(text, "Traceparent", header.trace->header());
  add_header(text, "Authorization", header.authorization);
  add_header(text, "x-api-key", header.api_key);
  add_header(text, "X-Forwarded-For", client_of(exchange).address);
  return text;
}

std::string request_text(const Exchange& exchange, const std::string& body) {
  std::string text = request_head(exchange);
  add_header(text, "Connection", "close");
  add_header(text, "Content-Type", exchange.header.content_type);
  if (!body.empty()) add_header(text, "Content-Length", std::to_string(body.size()));
  return text + "\r\n" + body;
}

// The handshake of a WebSocket as the client sent it.
std::string upgrade_text(const Exchange& exchange, const RequestReader::Message& handshake) {
  using boost::beast::http::field;
  std::string text = request_head(exchange);
  for (const field name : {field::connection, field::upgrade, field::sec_websocket_key,
                           field::sec_websocket_version, field::sec_websocket_protocol}) {
    const auto title = to_string(name), value = handshake[name];
    add_header(text, {title.data(), title.size()}, {value.data(), value.size()});
  }
  return text + "\r\n";
}

Reply reply_of(const EngineConnection& engine) {
  Reply reply{.status = engine.status(), .content_type = engine.header("Content-Type")};
  for (const std::string_view name : kPassedHeaders) {
    if (std::string value = engine.header(name); !value.empty())
      reply.headers.emplace_back(name, std::move(value));
  }
  return reply;
}

ApiError engine_gone(const FleetMember& member) {
  return {.status = 502,
          .type = "server_error",
          .message = fmt::format("the engine of {} ended while it answered", member.model.name),
          .code = "engine_failed",
          .retry_after = 1};
}

// Routes whose streams are events, which may be preceded by comments.
bool has_events(const RouteRow& row) {
  constexpr std::array<std::string_view, 5> kRoutes = {"/v1/chat/completions", "/v1/completions",
                                                       "/v1/responses", "/v1/messages", "/completion"};
  return std::ranges::find(kRoutes, row.pattern) != kRoutes.end();
}

}  // namespace

// One request on its way to an engine and back.
class Forwarding {
 public:
  Forwarding(Exchange& exchange, ForwardedRequest request)
      : exchange_(exchange),
        request_(std::move(request)),
        connection_(*exchange.connection),
        fleet_(*exchange.connection->service().fleet) {}

  Connection::Task<bool> run();
  // Takes a place at the engine; null: the client is gone, or it was told why there is none.
  Connection::Task<std::unique_ptr<FleetPlace>> enter();

 private:
  Connection::Task<bool> wait_for_engine();
  Connection::Task<bool> notify(Connection::Clock::duration waited);
  Connection::Task<bool> relay(EngineAnswer& answer);
  Connection::Task<bool> relay_body(EngineAnswer& answer, bool is_framed);
  Connection::Task<bool> fail(ApiError error);
  Connection::Task<bool> end_stream(const std::string& error);
  std::string framed(std::string_view bytes) const {
    return exchange_.is_chunked ? fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes) : std::string(bytes);
  }

  Exchange& exchange_;
  ForwardedRequest request_;
  Connection& connection_;
  Fleet& fleet_;
  MemberPointer member_;
  bool is_begun_ = false;  // the header of a stream was sent
  Connection::Clock::time_point noticed_at_ = {};
};

Connection::Task<std::unique_ptr<FleetPlace>> Forwarding::enter() {
  auto found = fleet_.find(request_.model);
  if (!found.ok()) {
    co_await fail(found.error());
    co_return nullptr;
  }
  member_ = *found;
  if (std::optional<ApiError> crowd = key_crowd(connection_.service(), exchange_.admission.scope, 1)) {
    co_await fail(*std::move(crowd));
    co_return nullptr;
  }
  const bool is_placed = co_await wait_for_engine();
  if (!is_placed) co_return nullptr;
  co_return std::make_unique<FleetPlace>(&fleet_, member_, exchange_.admission.scope);
}

Connection::Task<bool> Forwarding::run() {
  const std::unique_ptr<FleetPlace> place = co_await enter();
  if (place == nullptr) co_return exchange_.is_answered && !is_begun_ && !connection_.is_gone();
  const auto answer = std::make_shared<EngineAnswer>(connection_.stream().get_executor());
  answer->waiter = &connection_;
  const EngineAnswerGuard guard(answer.get());
  asio::co_spawn(connection_.stream().get_executor(),
                 read_answer(answer, member_->socket, request_text(exchange_, request_.body)),
                 [answer](const std::exception_ptr& failure) {
                   answer->is_broken = answer->is_broken || failure != nullptr;
                   answer->wake();
                 });
  while (!answer->has_header && !answer->is_broken && !connection_.is_gone())
    co_await connection_.wait(kUntilWoken);
  if (connection_.is_gone()) co_return false;
  if (answer->is_broken && !answer->has_header) co_return co_await fail(engine_gone(*member_));
  co_return co_await relay(*answer);
}

// True: the request has a place at the engine. False: the client is gone, or it was told why there is none.
Connection::Task<bool> Forwarding::wait_for_engine() {
  const auto began = Connection::Clock::now();
  while (!connection_.is_gone()) {
    if (connection_.service().phase == Phase::kDraining) {
      ApiError error{.status = 503,
                     .type = "unavailable_error",
                     .message = "the server is shutting down",
                     .code = "draining",
                     .retry_after = 5};
      co_await fail(std::move(error));
      co_return false;
    }
    const ApiResult<bool> entered = fleet_.enter(*member_, exchange_.admission.scope);
    if (!entered.ok()) {
      co_await fail(entered.error());
      co_return false;
    }
    if (*entered) co_return true;
    const bool is_told = co_await notify(Connection::Clock::now() - began);
    if (!is_told) co_return false;
    co_await connection_.wait(kAskAgain);
  }
  co_return false;
}

// Tells the reader of a stream that it waits. False: the connection is broken.
Connection::Task<bool> Forwarding::notify(Connection::Clock::duration waited) {
  const auto now = Connection::Clock::now();
  const bool is_due = waited >= kFirstNotice && now - noticed_at_ >= kNotices;
  if (!is_due || !request_.streams || !has_events(*exchange_.admission.match.row)) co_return true;
  noticed_at_ = now;
  std::string text;
  if (!is_begun_) {
    Reply reply{.content_type = "text/event-stream"};
    reply.headers.emplace_back("X-Accel-Buffering", "no");
    exchange_.keeps_alive = exchange_.keeps_alive && exchange_.is_chunked;
    text = header_text(exchange_, reply, -1);
    is_begun_ = exchange_.is_answered = true;
  }
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(waited).count();
  text += framed(fmt::format(": {} is {}, {} s\n\n", member_->model.name, member_->state_name(), whole));
  co_return co_await connection_.write(text);
}

Connection::Task<bool> Forwarding::relay(EngineAnswer& answer) {
  const Reply reply = reply_of(answer.engine);
  const bool has_body = exchange_.header.method != "HEAD";
  audit_reply(exchange_, reply);
  if (is_begun_) {
    if (reply.status == 200) co_return co_await relay_body(answer, exchange_.is_chunked);
    while (!answer.is_done && !answer.is_broken && !connection_.is_gone())
      co_await connection_.wait(kUntilWoken);
    const std::string error = std::exchange(answer.pending, {});
    co_return co_await end_stream(error);
  }
  const auto length = answer.engine.length();
  const bool is_framed = !length && exchange_.is_chunked;
  if (!length && !exchange_.is_chunked) exchange_.keeps_alive = false;
  connection_.service().metrics.on_response(reply.status);
  const std::string header = header_text(exchange_, reply, length ? static_cast<int64_t>(*length) : -1);
  exchange_.is_answered = true;
  const bool is_sent = co_await connection_.write(header);
  if (!is_sent || !has_body) co_return is_sent;
  co_return co_await relay_body(answer, is_framed);
}

Connection::Task<bool> Forwarding::relay_body(EngineAnswer& answer, bool is_framed) {
  const bool is_events = answer.engine.header("Content-Type").starts_with("text/event-stream");
  bool is_sent = true;
  while (is_sent && !connection_.is_gone()) {
    const std::string bytes = answer.take(is_events);
    if (!bytes.empty()) {
      const std::string piece = is_framed ? framed(bytes) : bytes;
      is_sent = co_await connection_.write(piece);
      continue;
    }
    if (answer.is_done) {
      constexpr std::string_view kEnd = "0\r\n\r\n";
      if (is_framed) is_sent = co_await connection_.write(kEnd);
      co_return is_sent;
    }
    if (answer.is_broken) {
      if (is_events) {
        is_begun_ = true;
        co_return co_await fail(engine_gone(*member_));
      }
      log_reply(exchange_, error_reply(exchange_, engine_gone(*member_)));
      co_return false;
    }
    co_await connection_.wait(kUntilWoken);
  }
  co_return false;
}

// An error as the answer, or as the last event of a stream that has begun.
Connection::Task<bool> Forwarding::fail(ApiError error) {
  const Reply reply = error_reply(exchange_, error);
  if (!is_begun_) co_return co_await send(exchange_, reply);
  log_reply(exchange_, reply);
  co_return co_await end_stream(reply.body);
}

// Writes the JSON of an error as the last event.
Connection::Task<bool> Forwarding::end_stream(const std::string& error) {
  const bool is_messages = exchange_.admission.match.row->pattern == "/v1/messages";
  const std::string event = (is_messages ? "event: error\n" : "") + ("data: " + error) + "\n\n";
  const std::string last = framed(event) + (exchange_.is_chunked ? "0\r\n\r\n" : "");
  co_await connection_.write(last);
  exchange_.keeps_alive = false;
  co_return false;
}

Connection::Task<bool> answer_forwarded(Exchange& exchange, ForwardedRequest request) {
  Connection& connection = *exchange.connection;
  connection.start_watch();
  Forwarding forwarding(exchange, std::move(request));
  const bool is_sent = co_await forwarding.run();
  const bool is_gone = connection.is_gone();
  co_await connection.stop_watch();
  co_return is_sent && !is_gone;
}

// The bytes between a client and an engine, both ways, until one of them ends.
class Splice : public std::enable_shared_from_this<Splice> {
 public:
  Splice(std::shared_ptr<Connection> client, std::unique_ptr<FleetPlace> place)
      : client_(std::move(client)), place_(std::move(place)), engine_(client_->stream().get_executor()) {}

  Connection::Task<void> run(std::string request);

 private:
  using Code = boost::system::error_code;
  using Bytes = std::array<char, 16 << 10>;
  static constexpr auto kLook = std::chrono::milliseconds(500);  // between two looks at the engine's state
  static constexpr auto kSilence = std::chrono::seconds(2);

  // However the coroutine ends that sends to the engine, the other one learns it.
  class Sending {
   public:
    explicit Sending(Splice* splice) : splice_(splice) { splice_->is_sending_ = true; }
    ~Sending() {
      splice_->is_sending_ = false;
      splice_->end();
      splice_->client_->wake();
    }
    Sending(const Sending&) = delete;
    Sending& operator=(const Sending&) = delete;

   private:
    Splice* splice_;
  };

  static Connection::Task<void> send_to_engine(std::shared_ptr<Splice> splice);
  static Connection::Task<void> watch(std::shared_ptr<Splice> splice);
  void end() {
    Code ignored;
    engine_.close(ignored);
    client_->stream().socket().cancel(ignored);
    is_over_ = true;
  }

  std::shared_ptr<Connection> client_;
  std::unique_ptr<FleetPlace> place_;
  asio::local::stream_protocol::socket engine_;
  Connection::Clock::time_point spoke_at_ = Connection::Clock::now();  // either side
  bool is_over_ = false, is_sending_ = false;
};

// A client without bytes does not hold up an engine that has to go: it goes on over a new connection.
Connection::Task<void> Splice::watch(std::shared_ptr<Splice> splice) {
  asio::steady_timer timer(splice->client_->stream().get_executor());
  while (!splice->is_over_) {
    timer.expires_after(kLook);
    Code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (splice->is_over_) co_return;
    const bool is_silent = Connection::Clock::now() - splice->spoke_at_ >= kSilence;
    if (splice->place_->member().state == EngineState::kLeaving && is_silent) splice->end();
  }
}

Connection::Task<void> Splice::send_to_engine(std::shared_ptr<Splice> splice) {
  const Sending sending(splice.get());
  boost::beast::flat_buffer& waiting = splice->client_->buffer();
  Code error;
  while (!splice->is_over_ && !error) {
    if (waiting.size() > 0) {
      co_await asio::async_write(splice->engine_, waiting.data(),
                                 asio::redirect_error(asio::use_awaitable, error));
      waiting.consume(waiting.size());
      continue;
    }
    const size_t count = co_await splice->client_->stream().async_read_some(
        waiting.prepare(Bytes().size()), asio::redirect_error(asio::use_awaitable, error));
    waiting.commit(count);
    splice->spoke_at_ = Connection::Clock::now();
  }
}

Connection::Task<void> Splice::run(std::string request) {
  Code error;
  const asio::local::stream_protocol::endpoint endpoint(place_->member().socket);
  co_await engine_.async_connect(endpoint, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return;
  co_await asio::async_write(engine_, asio::buffer(request),
                             asio::redirect_error(asio::use_awaitable, error));
  const auto executor = client_->stream().get_executor();
  asio::co_spawn(executor, send_to_engine(shared_from_this()), asio::detached);
  asio::co_spawn(executor, watch(shared_from_this()), asio::detached);
  Bytes bytes;
  while (!error && !is_over_) {
    const size_t count = co_await engine_.async_read_some(asio::buffer(bytes),
                                                          asio::redirect_error(asio::use_awaitable, error));
    if (count == 0) continue;  // after an error
    const std::string_view piece(bytes.data(), count);
    const bool is_sent = co_await client_->write(piece);
    if (!is_sent) break;
    spoke_at_ = Connection::Clock::now();
  }
  end();
  while (is_sending_) co_await client_->wait(kUntilWoken);
  place_.reset();
}

Connection::Task<void> forward_drafting(Exchange& exchange, const RequestReader& reader) {
  Connection& connection = *exchange.connection;
  connection.start_watch();
  ForwardedRequest request{.model = query_value(exchange.header.target, "model")};
  Forwarding forwarding(exchange, std::move(request));
  std::unique_ptr<FleetPlace> place = co_await forwarding.enter();
  co_await connection.stop_watch();
  if (place == nullptr || connection.is_gone()) co_return;
  exchange.is_answered = true;
  const auto splice = std::make_shared<Splice>(connection.shared_from_this(), std::move(place));
  std::string handshake = upgrade_text(exchange, reader.message());
  co_await splice->run(std::move(handshake));
}

Connection::Task<std::optional<Reply>> ask_engine(Exchange& exchange, MemberPointer member,
                                                  ForwardedRequest request) {
  Fleet& fleet = *exchange.connection->service().fleet;
  const ApiResult<bool> entered = fleet.enter(*member, exchange.admission.scope);
  if (!entered.ok() || !*entered) co_return std::nullopt;
  const FleetPlace place(&fleet, member, exchange.admission.scope);
  EngineConnection engine(exchange.connection->stream().get_executor());
  const std::string text = request_text(exchange, request.body);
  const bool is_answered = co_await engine.ask(member->socket, text);
  if (!is_answered) co_return std::nullopt;
  Reply reply = reply_of(engine);
  while (reply.body.size() <= kMostWhole) {
    const std::optional<std::string> bytes = co_await engine.read_some();
    if (!bytes) co_return std::nullopt;
    if (bytes->empty()) co_return reply;
    reply.body += *bytes;
  }
  co_return std::nullopt;
}

}  // namespace outrider
