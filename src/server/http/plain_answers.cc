// SPDX-License-Identifier: Apache-2.0
#include "server/http/plain_answers.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "server/api/answers/text_routes.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Reply json_reply(const Json& json, int status = 200) { return {.status = status, .body = dumped(json)}; }

Reply health(const Service& service) {
  if (service.phase == Phase::kReady) return json_reply({{"status", "ok"}});
  const bool is_loading = service.phase == Phase::kLoading;
  Json json = {{"status", is_loading ? "loading" : "draining"}};
  if (is_loading) {
    const LoadStage stage = service.load_stage ? service.load_stage->load() : LoadStage::kFiles;
    json["stage"] = kLoadStages[static_cast<size_t>(stage)];
    json["stages"] = kLoadStages;
    json["fraction"] = static_cast<double>(stage) / static_cast<double>(kLoadStages.size());
    json["seconds"] = std::round((now_ms() - service.started_ms) / 100) / 10;
  }
  Reply reply = json_reply(json, 503);
  reply.headers.emplace_back("Retry-After", "2");
  return reply;
}

Reply model(const Service& service, const std::string& name) {
  auto body = model_body(name, service.model);
  return body.ok() ? Reply{.body = std::move(body).value()} : error_reply(body.error());
}

Json speculation_object(const EngineStatus& engine) {
  const SpeculationStats& stats = engine.speculation;
  return {
      {"method", stats.method},
      {"steps", stats.steps},
      {"drafts", stats.drafts},
      {"drafted", stats.drafted},
      {"accepted", stats.accepted},
      {"committed", stats.committed},
      {"acceptance_length", stats.acceptance_length()},
      {"acceptance_rate",
       stats.drafted == 0 ? 0.0 : static_cast<double>(stats.accepted) / static_cast<double>(stats.drafted)},
      {"drafted_per_position", stats.drafted_per_position},
      {"accepted_per_position", stats.accepted_per_position},
      {"draft_failures", stats.draft_failures},
      {"draft_ms", stats.draft_ms},
      {"verify_ms", stats.verify_ms},
      {"speedup", engine.speedup}};
}

EngineStatus engine_status(const Service& service) {
  return service.engine == nullptr ? EngineStatus{} : service.engine->status();
}

Reply stats(const Service& service) {
  const EngineStatus engine = engine_status(service);
  const Json json = {{"model", service.model.name},
                     {"drafter", service.model.info.drafter},
                     {"sources", service.model.info.sources},
                     {"uptime_s", (now_ms() - service.started_ms) / 1e3},
                     {"running", engine.running},
                     {"waiting", engine.waiting},
                     {"calls", service.calls.load()},
                     {"connections", service.connections},
                     {"max_batch", service.max_batch},
                     {"max_queue", service.options.max_queue},
                     {"pages", engine.pages},
                     {"used_pages", engine.used_pages},
                     {"steps", engine.steps},
                     {"rows", engine.rows},
                     {"prompt_tokens", engine.prompt_tokens},
                     {"cached_tokens", engine.cached_tokens},
                     {"output_tokens", engine.output_tokens},
                     {"preemptions", engine.preemptions},
                     {"speculation", speculation_object(engine)}};
  return json_reply(json);
}

Reply metrics(const Service& service) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = service.metrics.text({.model = service.model.name,
                                        .engine = engine_status(service),
                                        .waiting_calls = service.calls.preparing(),
                                        .connections = service.connections})};
}

Reply chat_page(const Service& service) {
  Reply reply{.content_type = "text/html; charset=utf-8", .body = std::string(service.chat_html())};
  // The page itself contains the rest of its policy.
  reply.headers.emplace_back("Content-Security-Policy",
                             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  reply.headers.emplace_back("Referrer-Policy", "no-referrer");
  return reply;
}

Reply cancel(Service& service, const std::string& id, uint64_t scope) {
  if (service.engine != nullptr && service.calls.cancel(id, scope, *service.engine)) {
    return json_reply({{"id", id}, {"object", "request.cancelled"}, {"cancelled", true}});
  }
  return error_reply({.status = 404,
                      .type = "not_found_error",
                      .message = "no request of this id is running",
                      .param = "id",
                      .code = "request_not_found"});
}

}  // namespace

Reply answer(Service& service, const RouteMatch& match, uint64_t scope) {
  switch (match.row->route) {
    case Route::kPage:
      return chat_page(service);
    case Route::kHealth:
      return health(service);
    case Route::kMetrics:
      return metrics(service);
    case Route::kVersion:
      return {.body = version_body()};
    case Route::kStats:
      return stats(service);
    case Route::kModels:
      return {.body = models_body(service.model)};
    case Route::kModel:
      return model(service, match.argument);
    case Route::kCancel:
      return cancel(service, match.argument, scope);
    default:
      break;
  }
  return error_reply(
      {.status = 404, .type = "not_found_error", .message = "no such path", .code = "not_found"});
}

}  // namespace outrider
