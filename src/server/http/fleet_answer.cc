// SPDX-License-Identifier: Apache-2.0
#include "server/http/fleet_answer.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "server/api/request_field.h"
#include "server/fleet/fleet_text.h"
#include "server/http/forwarded_answer.h"
#include "server/http/worker_task.h"

namespace outrider {
namespace {

constexpr int kMostDepth = 64;  // of the JSON of a request

// Routes whose argument is an id that one of the engines has given.
constexpr std::array<std::string_view, 3> kIdRoutes = {"/v1/responses/{id}", "/v1/responses/{id}/input_items",
                                                       "/v1/requests/{id}/cancel"};

// Reads which model a request is for; as Ollama's clients may say, by "name".
ApiResult<ForwardedRequest> read_request(std::string text) {
  ForwardedRequest request;
  const ApiResult<RequestBody> body = RequestBody::parse(text, kMostDepth);
  if (!body.ok()) return body.error();
  const RequestField root = body->root();
  for (const char* name : {"name", "model"}) {
    const std::optional<RequestField> field = root.find(name);
    if (!field) continue;
    ApiResult<std::string> model = field->string();
    if (!model.ok()) return model.error();
    request.model = std::move(model).value();
  }
  const std::optional<RequestField> streams = root.find("stream");
  request.streams = streams && streams->is_bool() && *streams->boolean();
  request.body = std::move(text);
  return request;
}

}  // namespace

// A body, and the request that the worker has read in it.
struct ReadRequest {
  ReceivedBody body;
  std::optional<ApiResult<ForwardedRequest>> made;
};

namespace {

// Reads the body on a worker, since that takes time. nullopt: the client is gone.
Connection::Task<std::optional<ApiResult<ForwardedRequest>>> read_on_worker(Exchange& exchange) {
  Connection& connection = *exchange.connection;
  const auto state = std::make_shared<ReadRequest>();
  PreparationWorker& worker = connection.service().workers->worker_for(exchange.body.bound());
  state->body = std::move(exchange.body);
  std::function<void()> job = [state] {
    auto text = state->body.take_text();
    state->made =
        text.ok() ? read_request(std::move(text).value()) : ApiResult<ForwardedRequest>(text.error());
  };
  std::function<bool()> ends = [] { return false; };
  connection.start_watch();
  const bool is_done = co_await run_on_worker(connection, worker, std::move(job), std::move(ends));
  co_await connection.stop_watch();
  if (!is_done || connection.is_gone()) co_return std::nullopt;
  co_return std::move(state->made);
}

Reply model_reply(Fleet& fleet, const std::string& name, int64_t created) {
  const ApiResult<MemberPointer> found = fleet.find(name);
  if (!found.ok()) return error_reply(found.error());
  return {.body = fleet_model_body(**found, name, created)};
}

// POST /v1/models/load and unload: {"model": name}
Reply change_model(Fleet& fleet, std::string body, bool loads) {
  const ApiResult<ForwardedRequest> request = read_request(std::move(body));
  if (!request.ok()) return error_reply(request.error());
  const ApiResult<MemberPointer> found = fleet.find(request->model);
  if (!found.ok()) return error_reply(found.error());
  if (loads) {
    if (const std::optional<ApiError> refused = fleet.load(**found)) return error_reply(*refused);
  } else {
    fleet.unload(**found);
  }
  const std::string state((*found)->state_name());
  return {.body = R"({"success":true,"model":")" + (*found)->model.name + R"(","status":{"value":")" + state +
                  "\"}}"};
}

// The answers about the fleet; nullopt: it is a question to a model.
std::optional<Reply> own_reply(Exchange& exchange) {
  Service& service = exchange.connection->service();
  Fleet& fleet = *service.fleet;
  const std::string_view pattern = exchange.admission.match.row->pattern;
  const double uptime = (now_ms() - service.started_ms) / 1e3;
  const int64_t created = std::time(nullptr) - static_cast<int64_t>(uptime);
  if (pattern == "/v1/models") return Reply{.body = fleet_models_body(fleet, created)};
  if (pattern == "/v1/models/{id}") return model_reply(fleet, exchange.admission.match.argument, created);
  if (pattern == "/api/tags") return Reply{.body = fleet_tags_body(fleet, /*only_loaded=*/false)};
  if (pattern == "/api/ps") return Reply{.body = fleet_tags_body(fleet, /*only_loaded=*/true)};
  if (pattern == "/stats") return Reply{.body = fleet_stats_body(fleet, uptime)};
  if (pattern == "/v1/models/load") return change_model(fleet, std::move(exchange.body.bytes), true);
  if (pattern == "/v1/models/unload") return change_model(fleet, std::move(exchange.body.bytes), false);
  return std::nullopt;
}

// GET /stats?model=NAME: what its engine says, or where there is none its state. No engine starts for that.
Connection::Task<bool> answer_stats(Exchange& exchange, std::string model) {
  const ApiResult<MemberPointer> found = exchange.connection->service().fleet->find(model);
  if (!found.ok()) {
    const Reply reply = error_reply(exchange, found.error());
    co_return co_await send(exchange, reply);
  }
  std::optional<Reply> reply;
  if ((*found)->state == EngineState::kLoaded) {
    ForwardedRequest request;
    reply = co_await ask_engine(exchange, *found, std::move(request));
  }
  if (!reply) reply = Reply{.body = fleet_member_stats(**found)};
  co_return co_await send(exchange, *reply);
}

// Figures of the fleet and of all engines that are loaded.
Connection::Task<bool> answer_metrics(Exchange& exchange) {
  Service& service = exchange.connection->service();
  FrontFigures front{.connections = service.connections};
  if (service.batches != nullptr) front.batches = service.batches->figures();
  if (service.audit != nullptr) front.audit_lost = service.audit->lost();
  std::vector<std::string> texts = {fleet_metrics(*service.fleet, front)};
  const std::vector<MemberPointer> members = service.fleet->members();
  for (const MemberPointer& member : members) {
    if (member->state != EngineState::kLoaded) continue;
    ForwardedRequest request;
    std::optional<Reply> reply = co_await ask_engine(exchange, member, std::move(request));
    if (reply && reply->status == 200) texts.push_back(std::move(reply->body));
  }
  const Reply reply{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                    .body = merged_metrics(texts)};
  co_return co_await send(exchange, reply);
}

// The engine that knows the id answers.
Connection::Task<bool> answer_by_id(Exchange& exchange) {
  Reply last = error_reply(exchange, {.status = 404,
                                      .type = "not_found_error",
                                      .message = "no loaded model knows this id",
                                      .param = "id",
                                      .code = "not_found"});
  const std::vector<MemberPointer> members = exchange.connection->service().fleet->members();
  for (const MemberPointer& member : members) {
    if (member->state != EngineState::kLoaded) continue;
    ForwardedRequest request{.body = exchange.body.bytes};
    std::optional<Reply> reply = co_await ask_engine(exchange, member, std::move(request));
    if (!reply) continue;
    last = *std::move(reply);
    if (last.status != 404) break;
  }
  co_return co_await send(exchange, last);
}

}  // namespace

Connection::Task<bool> answer_by_fleet(Exchange& exchange) {
  Service& service = exchange.connection->service();
  const RouteRow& row = *exchange.admission.match.row;
  std::string model = query_value(exchange.header.target, "model");
  if (row.pattern == "/stats" && !model.empty()) co_return co_await answer_stats(exchange, std::move(model));
  if (const std::optional<Reply> reply = own_reply(exchange)) co_return co_await send(exchange, *reply);
  if (row.pattern == "/metrics") co_return co_await answer_metrics(exchange);
  if (std::ranges::find(kIdRoutes, row.pattern) != kIdRoutes.end()) co_return co_await answer_by_id(exchange);
  if (!row.needs_model) {
    const Reply reply = std::get<PlainFunction>(row.function)(service, {});
    co_return co_await send(exchange, reply);
  }
  if (row.method != "POST") {
    ForwardedRequest request{.model = std::move(model)};
    co_return co_await answer_forwarded(exchange, std::move(request));
  }
  std::optional<ApiResult<ForwardedRequest>> request = co_await read_on_worker(exchange);
  if (!request) co_return false;
  if (!request->ok()) {
    const Reply reply = error_reply(exchange, request->error());
    co_return co_await send(exchange, reply);
  }
  co_return co_await answer_forwarded(exchange, std::move(*request).value());
}

}  // namespace outrider
