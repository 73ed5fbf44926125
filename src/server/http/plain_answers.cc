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

// vLLM's, which lm_eval asks for.
Reply tokenizer_info(const Service& service) {
  const ServedModel& served = service.model;
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  return json_reply(
      {{"tokenizer_class", "PreTrainedTokenizerFast"},
       {"model_max_length", served.context},
       {"vocab_size", served.vocab_size},
       {"bos_token", text_or_null(served.bos_token)},
       {"eos_token", text_or_null(served.eos_token)},
       {"pad_token", nullptr},
       {"chat_template",
        served.chat_template == nullptr ? Json(nullptr) : Json(served.chat_template->source())}});
}

// llama-server's, with the members that have a meaning here.
Reply props(const Service& service) {
  const ServedModel& served = service.model;
  const SamplingParams& sampling = served.sampling;
  const Json params = {{"temperature", sampling.temperature},
                       {"top_k", sampling.top_k},
                       {"top_p", sampling.top_p},
                       {"min_p", sampling.min_p},
                       {"repeat_penalty", sampling.repetition_penalty},
                       {"presence_penalty", sampling.presence_penalty},
                       {"frequency_penalty", sampling.frequency_penalty}};
  return json_reply({{"default_generation_settings", {{"n_ctx", served.context}, {"params", params}}},
                     {"total_slots", service.max_batch},
                     {"model_alias", served.name},
                     {"modalities", {{"vision", false}, {"audio", false}}},
                     {"chat_template", served.chat_template == nullptr ? "" : served.chat_template->source()},
                     {"bos_token", served.bos_token},
                     {"eos_token", served.eos_token},
                     {"is_sleeping", false}});
}

// llama-server's; the places of the batch, of which as many are busy as sequences run.
Reply slots(const Service& service) {
  const int running = static_cast<int>(engine_status(service).running);
  Json list = Json::array();
  for (int i = 0; i < service.max_batch; ++i) {
    list.push_back({{"id", i}, {"n_ctx", service.model.context}, {"is_processing", i < running}});
  }
  return json_reply(list);
}

Reply metrics(const Service& service) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = service.metrics.text({.model = service.model.name,
                                        .engine = engine_status(service),
                                        .waiting_calls = service.calls.preparing(),
                                        .connections = service.connections,
                                        .drafting_sessions = static_cast<int>(service.drafting.size())})};
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

Reply no_response() {
  return error_reply({.status = 404,
                      .type = "not_found_error",
                      .message = "no response of this id is kept",
                      .param = "id",
                      .code = "response_not_found"});
}

Reply stored_response(Service& service, const std::string& id, uint64_t scope) {
  const auto stored = service.responses.find(scope, id);
  return stored == nullptr ? no_response() : Reply{.body = stored->body};
}

Reply response_input(Service& service, const std::string& id, uint64_t scope) {
  const auto stored = service.responses.find(scope, id);
  if (stored == nullptr) return no_response();
  return {.body = R"({"object":"list","data":)" + stored->input +
                  R"(,"first_id":null,"last_id":null,"has_more":false})"};
}

Reply delete_response(Service& service, const std::string& id, uint64_t scope) {
  if (!service.responses.erase(scope, id)) return no_response();
  return json_reply({{"id", id}, {"object", "response"}, {"deleted", true}});
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
    case Route::kResponse:
      return stored_response(service, match.argument, scope);
    case Route::kResponseInput:
      return response_input(service, match.argument, scope);
    case Route::kDeleteResponse:
      return delete_response(service, match.argument, scope);
    case Route::kTokenizerInfo:
      return tokenizer_info(service);
    case Route::kProps:
      return props(service);
    case Route::kSlots:
      return slots(service);
    case Route::kCancel:
      return cancel(service, match.argument, scope);
    default:
      break;
  }
  return error_reply(
      {.status = 404, .type = "not_found_error", .message = "no such path", .code = "not_found"});
}

}  // namespace outrider
