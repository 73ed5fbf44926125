// SPDX-License-Identifier: Apache-2.0
#include "server/batch/fleet_lines.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "server/api/request_field.h"
#include "server/fleet/engine_connection.h"
#include "server/fleet/fleet_place.h"
#include "server/telemetry/request_log.h"

namespace outrider {
namespace {

namespace asio = boost::asio;

constexpr auto kAskAgain = std::chrono::milliseconds(50);
constexpr int kMostRuns = 3;                // of a line, when its engine ends
constexpr size_t kMostWhole = 64ULL << 20;  // bytes of an answer
constexpr int kDraining = 503;              // of an engine that was told to end, or has no memory
constexpr int kMostDepth = 64;              // of the JSON of a body

LineAnswer error_answer(const ApiError& error) { return {.status = error.status, .body = error_body(error)}; }

// Empty: the body names no model.
ApiResult<std::string> model_of(const BatchLine& line) {
  const ApiResult<RequestBody> body = RequestBody::parse(line.body, kMostDepth);
  if (!body.ok()) return body.error();
  const std::optional<RequestField> model = body->root().find("model");
  return model ? model->string() : std::string();
}

}  // namespace

struct FleetLines::Line {
  BatchLine request;
  std::string id;
  uint64_t scope = 0;
  LineCalls::Done done;
  asio::steady_timer pause;            // between two looks for a place
  EngineConnection* engine = nullptr;  // that answers it
  std::optional<ApiError> error = {};  // why it gets no place
  bool is_cancelled = false;
};

void FleetLines::start(BatchLine line, const std::string& id, uint64_t scope, LineCalls::Done done) {
  if (is_closed_) return done(std::nullopt);
  const auto entry = std::make_shared<Line>(Line{.request = std::move(line),
                                                 .id = id,
                                                 .scope = scope,
                                                 .done = std::move(done),
                                                 .pause = asio::steady_timer(*io_)});
  lines_.emplace(id, entry);
  asio::co_spawn(*io_, run(entry), [this, entry](const std::exception_ptr& failure) {
    if (failure == nullptr) return;
    log_failure("batch_line_failed", failure);
    finish(*entry, error_answer({.status = 500,
                                 .type = "server_error",
                                 .message = "an internal error",
                                 .code = "internal_error"}));
  });
}

void FleetLines::finish(Line& line, std::optional<LineAnswer> answer) {
  if (lines_.erase(line.id) == 0) return;
  line.done(line.is_cancelled ? std::nullopt : std::move(answer));
}

void FleetLines::cancel(const std::string& id) {
  const auto found = lines_.find(id);
  if (found == lines_.end()) return;
  Line& line = *found->second;
  line.is_cancelled = true;
  line.pause.cancel();
  if (line.engine != nullptr) line.engine->close();
}

void FleetLines::close() {
  is_closed_ = true;
  for (const auto& [id, line] : lines_) cancel(id);
}

FleetLines::Task<void> FleetLines::run(LinePointer line) {
  std::optional<LineAnswer> found = co_await answer(line);
  finish(*line, std::move(found));
}

FleetLines::Task<std::optional<LineAnswer>> FleetLines::answer(LinePointer line) {
  const ApiResult<std::string> name = model_of(line->request);
  if (!name.ok()) co_return error_answer(name.error());
  const ApiResult<MemberPointer> member = fleet_->find(*name);
  if (!member.ok()) co_return error_answer(member.error());
  for (int runs = 0; runs < kMostRuns && !line->is_cancelled; ++runs) {
    const bool is_placed = co_await wait_for_place(line, *member);
    if (line->error) co_return error_answer(*line->error);
    if (!is_placed) co_return std::nullopt;
    std::optional<LineAnswer> found = co_await ask(line, *member);
    if (found) co_return found;
    co_await rest(line);
  }
  co_return error_answer({.status = 502,
                          .type = "server_error",
                          .message = fmt::format("the engine of {} ended while it answered, {} times",
                                                 (*member)->model.name, kMostRuns),
                          .code = "engine_failed"});
}

// False: the line was cancelled, or has an error.
FleetLines::Task<bool> FleetLines::wait_for_place(LinePointer line, MemberPointer member) {
  while (!line->is_cancelled) {
    const ApiResult<bool> entered = fleet_->enter_in_background(*member, line->scope);
    if (!entered.ok()) line->error = entered.error();
    if (!entered.ok()) co_return false;
    if (*entered) co_return true;
    co_await rest(line);
  }
  co_return false;
}

// Waits a moment, unless the line is cancelled.
FleetLines::Task<void> FleetLines::rest(LinePointer line) {
  line->pause.expires_after(kAskAgain);
  boost::system::error_code ignored;
  co_await line->pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

FleetLines::Task<std::optional<LineAnswer>> FleetLines::ask(LinePointer line, MemberPointer member) {
  const FleetPlace place(fleet_, member, line->scope);
  EngineConnection engine(io_->get_executor());
  line->engine = &engine;
  const std::string request = fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Request-Id: {}\r\n{}: {}\r\n"
      "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      line->request.url, line->id, FleetKey::kHeader, fleet_->key().header(line->scope),
      line->request.body.size(), line->request.body);
  bool is_answered = co_await engine.ask(member->socket, request);
  LineAnswer found{.status = is_answered ? engine.status() : 0, .body = {}};
  while (is_answered && found.body.size() <= kMostWhole) {
    const std::optional<std::string> bytes = co_await engine.read_some();
    is_answered = bytes.has_value();
    if (!bytes || bytes->empty()) break;
    found.body += *bytes;
  }
  line->engine = nullptr;
  if (!is_answered || found.status == kDraining) co_return std::nullopt;
  co_return found;
}

}  // namespace outrider
