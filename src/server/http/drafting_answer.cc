// SPDX-License-Identifier: Apache-2.0
#include "server/http/drafting_answer.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/websocket.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/quote.h"
#include "remote/protocol/codec.h"
#include "server/http/forwarded_answer.h"

namespace outrider {
namespace {

namespace ws = boost::beast::websocket;

constexpr auto kLongTime = std::chrono::hours(1);

// Whether a client asks for a WebSocket of this protocol (RFC 6455, 4.2.1), with a key of 16 bytes in base64.
bool is_handshake(const RequestReader::Message& request) {
  using boost::beast::http::field;
  return ws::is_upgrade(request) && request[field::sec_websocket_version] == "13" &&
         request[field::sec_websocket_key].size() == 24 && request.count(field::sec_websocket_key) == 1 &&
         boost::beast::http::token_list(request[field::sec_websocket_protocol]).exists(kDraftingProtocol);
}

// Where a client goes on that opens a session.
ResumeMessage place_of(const OpenMessage& message) {
  return {.session = message.session,
          .connection = message.connection,
          .output_length = static_cast<uint32_t>(message.output.size()),
          .state_tokens = message.state_tokens};
}

}  // namespace

// One connection of a client that drafts. The connection's coroutine reads; a second one writes. Both own a
// share of it, because an exception may end either first.
class DraftingConnection : public std::enable_shared_from_this<DraftingConnection> {
 public:
  explicit DraftingConnection(const Exchange& exchange)
      : exchange_(exchange),
        owner_(exchange.connection->shared_from_this()),
        connection_(*owner_),
        socket_(connection_.stream()) {}

  Connection::Task<void> run(const RequestReader::Message& handshake);

 private:
  class Reading;
  class Writing;

  using Code = boost::system::error_code;

  Service& service() { return connection_.service(); }
  void keep_alive() { connection_.set_deadline(service().limits.drafting_gap); }
  Connection::Task<void> read();
  Connection::Task<void> write(std::shared_ptr<Writing> writing);
  Connection::Task<void> write_messages();
  std::optional<std::string> next_message();

  void take(const OpenMessage& message);
  void take(const ResumeMessage& message);
  void take(TreeMessage& message);
  void take(const CloseMessage& message);
  void open(const OpenMessage& message);
  std::string crowd();
  bool is_first(const SessionId& session);
  void attach(std::shared_ptr<DraftingEntry> entry, const ResumeMessage& from);
  void detach();
  void fail(RemoteErrorCode code, std::string text);
  void leave();

  Exchange exchange_;
  std::shared_ptr<Connection> owner_;
  Connection& connection_;
  ws::stream<ClientStream&> socket_;
  DraftingSessions::Key key_ = {};
  std::shared_ptr<DraftingEntry> entry_;  // null: the client has named no session
  std::optional<ErrorMessage> error_;     // ends the session
  bool is_over_ = false;                  // nothing more is read
  bool is_writing_ = false;               // write() has not ended
};

// The time in which messages are read and answered. However it ends, the session is free for another
// connection.
class DraftingConnection::Reading {
 public:
  explicit Reading(DraftingConnection* drafting) : drafting_(*drafting) {
    drafting_.service().metrics.on_drafting_connection();
  }
  ~Reading() {
    drafting_.is_over_ = true;
    drafting_.connection_.wake();
    drafting_.service().metrics.on_drafting_disconnection();
    drafting_.detach();
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  DraftingConnection& drafting_;
};

// A running write(). However its coroutine ends, the reader learns it.
class DraftingConnection::Writing {
 public:
  explicit Writing(std::shared_ptr<DraftingConnection> drafting) : drafting_(std::move(drafting)) {
    drafting_->is_writing_ = true;
  }
  ~Writing() {
    drafting_->is_writing_ = false;
    if (is_failed) drafting_->connection_.close();
    drafting_->connection_.wake();
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

  bool is_failed = true;  // until write() ends by itself

 private:
  std::shared_ptr<DraftingConnection> drafting_;
};

Connection::Task<void> DraftingConnection::run(const RequestReader::Message& handshake) {
  ws::stream_base::timeout timeout = ws::stream_base::timeout::suggested(boost::beast::role_type::server);
  timeout.idle_timeout = service().limits.idle_time;
  socket_.set_option(timeout);
  socket_.set_option(ws::stream_base::decorator([this](ws::response_type& response) {
    response.set(boost::beast::http::field::sec_websocket_protocol, kDraftingProtocol);
    response.set("X-Request-Id", exchange_.client_id);
  }));
  socket_.read_message_max(kMaxClientMessage);
  socket_.binary(true);
  connection_.set_deadline(service().limits.open_time);
  Code error;
  co_await socket_.async_accept(handshake, boost::asio::redirect_error(boost::asio::use_awaitable, error));
  if (error) co_return;
  service().metrics.on_response(101);
  const Reading reading(this);
  boost::asio::co_spawn(connection_.stream().get_executor(),
                        write(std::make_shared<Writing>(shared_from_this())), boost::asio::detached);
  co_await read();
  is_over_ = !error_;  // an error is still sent
  connection_.wake();
  while (is_writing_) co_await connection_.wait(kLongTime);
  if (connection_.is_expired()) service().metrics.on_drop(DropReason::kSlowBody);
}

Connection::Task<void> DraftingConnection::read() {
  boost::beast::flat_buffer buffer;
  while (!error_ && !is_over_ && !connection_.is_gone()) {
    Code error;
    co_await socket_.async_read(buffer, boost::asio::redirect_error(boost::asio::use_awaitable, error));
    if (error) co_return;
    const std::string bytes = boost::beast::buffers_to_string(buffer.data());
    buffer.consume(buffer.size());
    service().metrics.on_drafting_bytes(bytes.size(), 0);
    auto message = decode_client_message(bytes);
    if (message.ok()) {
      keep_alive();
      std::visit([this](auto& fields) { take(fields); }, message.value());
    } else {
      fail(RemoteErrorCode::kMalformed, message.error().message);
    }
    connection_.wake();
  }
}

Connection::Task<void> DraftingConnection::write(std::shared_ptr<Writing> writing) {
  co_await write_messages();
  writing->is_failed = false;
}

Connection::Task<void> DraftingConnection::write_messages() {
  Code error;
  while (!error && !is_over_) {
    const bool is_last = error_.has_value() || (entry_ && entry_->call->error);
    const std::optional<std::string> message = next_message();
    if (message) {
      service().metrics.on_drafting_bytes(0, message->size());
      co_await socket_.async_write(boost::asio::buffer(*message),
                                   boost::asio::redirect_error(boost::asio::use_awaitable, error));
      keep_alive();
      if (!is_last) continue;
    }
    if (is_last) {
      co_await socket_.async_close(ws::close_code::normal,
                                   boost::asio::redirect_error(boost::asio::use_awaitable, error));
      break;
    }
    co_await connection_.wait(kLongTime);
  }
}

// Hands the next tree to the engine. Returns the next message to the client; nullopt: there is none now.
std::optional<std::string> DraftingConnection::next_message() {
  if (entry_ && entry_->call->error && !error_) {
    const int status = entry_->call->error->status;
    fail(status == 429 ? RemoteErrorCode::kBusy
                       : (status < 500 ? RemoteErrorCode::kRefused : RemoteErrorCode::kEnded),
         entry_->call->error->message);
  }
  if (error_) return encode(ServerMessage(*error_));
  if (!entry_ || !entry_->call->is_accepted) return std::nullopt;
  VerifyingSession& session = entry_->generation->session();
  const std::optional<ServerMessage> message = session.next_message();
  if (auto tree = session.next_tree()) service().engine->offer(entry_->call->number, *std::move(tree));
  return message ? std::optional(encode(*message)) : std::nullopt;
}

void DraftingConnection::take(const OpenMessage& message) {
  if (!is_first(message.session)) return;
  if (auto entry = service().drafting.find(key_)) return attach(std::move(entry), place_of(message));
  if (service().phase == Phase::kDraining)
    return fail(RemoteErrorCode::kEnded, "the server is shutting down");
  if (message.vocabulary != service().vocabulary) {
    return fail(RemoteErrorCode::kVocabulary, "expected a client with the tokenizer of " +
                                                  service().model.name +
                                                  ", found another; choose a MODEL "
                                                  "with that tokenizer");
  }
  if (message.prompt.empty()) return fail(RemoteErrorCode::kRefused, "the prompt is empty");
  if (const int64_t limit = service().options.max_tokens_limit; limit > 0 && message.max_tokens > limit) {
    return fail(RemoteErrorCode::kRefused, "expected at most " + std::to_string(limit) +
                                               " tokens of output, found " +
                                               std::to_string(message.max_tokens));
  }
  if (const std::string refusal = crowd(); !refusal.empty()) return fail(RemoteErrorCode::kBusy, refusal);
  if (message.states != StateType::kNone && message.head != service().model.states.head) {
    return fail(
        RemoteErrorCode::kRefused,
        "expected a client whose draft head is that of the server, found another; start both with the same "
        "speculative_model");
  }
  open(message);
}

// Why there is no place for another session; empty: there is one.
std::string DraftingConnection::crowd() {
  const ServerOptions& options = service().options;
  const auto refusal = [](int limit, const char* whose) {
    return "expected fewer than " + std::to_string(limit) + " clients that draft" + whose +
           ", found as many; try again later";
  };
  if (std::cmp_greater_equal(service().drafting.size(), options.max_drafting_sessions))
    return refusal(options.max_drafting_sessions, "");
  if (std::cmp_greater_equal(service().drafting.size_of(key_.first), options.max_drafting_sessions_per_key))
    return refusal(options.max_drafting_sessions_per_key, " with one key");
  return "";
}

void DraftingConnection::open(const OpenMessage& message) {
  const ServedModel& model = service().model;
  OpenedMessage limits{.context = static_cast<uint32_t>(model.context),
                       .tree_nodes = static_cast<uint32_t>(service().options.drafting_nodes)};
  if (message.states != StateType::kNone) limits.state_size = static_cast<uint32_t>(model.states.size);
  if (!message.ignore_eos) limits.stop_tokens = model.stop_tokens;
  LiveCall call;
  call.id = exchange_.id;
  call.request_id = exchange_.client_id;
  call.method = "GET";
  call.route = exchange_.admission.match.row->pattern;
  call.scope = exchange_.admission.scope;
  call.arrived_ms = now_ms();
  call.client = client_of(exchange_);
  call.model = model.name;
  call.is_logged = is_logged(exchange_);
  call.has_time_limit = false;  // a session lasts as long as its client wants
  auto generation = std::make_unique<DraftingCall>(message, std::move(limits), call.scope);
  auto entry = std::make_shared<DraftingEntry>(DraftingEntry{.generation = generation.get()});
  call.generation = std::move(generation);
  entry->call = service().calls.open(std::move(call));
  if (!service().calls.submit(*entry->call, *service().engine)) {
    service().calls.close(*entry->call);
    return fail(RemoteErrorCode::kBusy, "the queue is full");
  }
  service().drafting.add(key_, entry);
  attach(std::move(entry), place_of(message));
}

void DraftingConnection::take(const ResumeMessage& message) {
  if (!is_first(message.session)) return;
  auto entry = service().drafting.find(key_);
  if (!entry) return fail(RemoteErrorCode::kUnknownSession, "the server does not know this session");
  service().metrics.on_drafting_resume();
  attach(std::move(entry), message);
}

// Notes the session that the connection is for. False: it is known already, because the message came twice or
// names another session.
bool DraftingConnection::is_first(const SessionId& session) {
  const DraftingSessions::Key key = {exchange_.admission.scope, session};
  if (entry_ && key != key_)
    fail(RemoteErrorCode::kMalformed, "expected one session per connection, found another");
  if (entry_) return false;
  key_ = key;
  return true;
}

void DraftingConnection::attach(std::shared_ptr<DraftingEntry> entry, const ResumeMessage& from) {
  if (from.connection < entry->connection)
    return fail(RemoteErrorCode::kMalformed, "the client has gone on over a newer connection");
  entry->connection = from.connection;
  const Status status = entry->generation->session().on_resume(from.output_length, from.state_tokens);
  if (!status.ok()) return fail(RemoteErrorCode::kMalformed, status.error().message);
  if (entry->is_served()) entry->leave();
  entry_ = std::move(entry);
  entry_->leave = [this] { leave(); };
  entry_->call->wake = [this] { connection_.wake(); };
}

// Another connection serves the session from now on.
void DraftingConnection::leave() {
  entry_ = nullptr;
  connection_.close();
}

void DraftingConnection::detach() {
  if (!entry_) return;
  entry_->leave = nullptr;
  entry_->call->wake = nullptr;
  entry_->left_ms = now_ms();
  entry_ = nullptr;
  if (error_) service().drafting.end(key_, service().calls, *service().engine);
}

void DraftingConnection::take(TreeMessage& message) {
  if (!entry_) return fail(RemoteErrorCode::kMalformed, "expected a session before its trees");
  const Status status = entry_->generation->session().on_tree(std::move(message), now_ms());
  if (!status.ok()) fail(RemoteErrorCode::kMalformed, status.error().message);
}

void DraftingConnection::take(const CloseMessage& /*message*/) {
  if (entry_) service().drafting.end(key_, service().calls, *service().engine);
  is_over_ = true;
}

void DraftingConnection::fail(RemoteErrorCode code, std::string text) {
  if (!error_) error_ = ErrorMessage{.code = code, .text = std::move(text)};
}

Connection::Task<void> answer_drafting(Exchange& exchange, const RequestReader& reader) {
  const RequestReader::Message& handshake = reader.message();
  exchange.keeps_alive = false;
  if (exchange.connection->service().options.drafting_nodes == 0) {
    const Reply reply = error_reply(exchange, {.status = 404,
                                               .type = "not_found_error",
                                               .message = "the server was started without --remote-drafting",
                                               .code = "not_found"});
    co_await send(exchange, reply);
    co_return;
  }
  if (!is_handshake(handshake)) {
    const Reply reply = error_reply(
        exchange, {.status = 426,
                   .message = "expected the handshake of a WebSocket, version 13, of the protocol " +
                              std::string(kDraftingProtocol),
                   .code = "upgrade_required"});
    co_await send(exchange, reply);
    co_return;
  }
  if (exchange.connection->service().fleet != nullptr) co_return co_await forward_drafting(exchange, reader);
  const std::string model = query_value(exchange.header.target, "model");
  if (!model.empty() && !exchange.connection->service().model.is_named(model)) {
    const Reply reply = error_reply(
        exchange, {.status = 404, .message = "no model " + quote(model), .code = "model_not_found"});
    co_await send(exchange, reply);
    co_return;
  }
  exchange.is_answered = true;
  const auto drafting = std::make_shared<DraftingConnection>(exchange);
  co_await drafting->run(handshake);
}

}  // namespace outrider
