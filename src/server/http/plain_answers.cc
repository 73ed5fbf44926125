// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "config/option_table.h"
#include "server/api/adapter_routes.h"
#include "server/api/answers/text_routes.h"
#include "server/api/json_writer.h"
#include "server/api/ollama/ollama_models.h"
#include "server/http/router.h"

namespace outrider {
namespace {

// An answer of one object, to whose members `add` adds.
template <typename Add>
Reply object_reply(Add&& add, int status = 200) {
  Reply reply{.status = status, .body = {}};
  JsonWriter out(reply.body);
  out.begin_object();
  add(out);
  out.end_object();
  return reply;
}

void add_loading(JsonWriter& out, const Service& service) {
  const LoadStage stage = service.load_stage ? service.load_stage->load() : LoadStage::kFiles;
  out.member("stage", kLoadStages[static_cast<size_t>(stage)])
      .member("stages", kLoadStages)
      .member("fraction", static_cast<double>(stage) / static_cast<double>(kLoadStages.size()))
      .member("seconds", std::round((now_ms() - service.started_ms) / 100) / 10);
}

void add_speculation(JsonWriter& out, const EngineStatus& engine) {
  const SpeculationStats& stats = engine.speculation;
  const double rate =
      stats.drafted == 0 ? 0.0 : static_cast<double>(stats.accepted) / static_cast<double>(stats.drafted);
  out.key("speculation")
      .begin_object()
      .member("method", stats.method)
      .member("steps", stats.steps)
      .member("drafts", stats.drafts)
      .member("drafted", stats.drafted)
      .member("accepted", stats.accepted)
      .member("committed", stats.committed)
      .member("acceptance_length", stats.acceptance_length())
      .member("acceptance_rate", rate)
      .member("drafted_per_position", stats.drafted_per_position)
      .member("accepted_per_position", stats.accepted_per_position)
      .member("draft_failures", stats.draft_failures)
      .member("foreseen_drafts", engine.foreseen_drafts)
      .member("draft_ms", stats.draft_ms)
      .member("verify_ms", stats.verify_ms)
      .member("speedup", engine.speedup)
      .end_object();
}

EngineStatus engine_status(const Service& service) {
  return service.engine == nullptr ? EngineStatus{} : service.engine->status();
}

std::string_view template_source(const ServedModel& served) {
  return served.chat_template == nullptr ? std::string_view() : served.chat_template->source();
}

void add_sampling(JsonWriter& out, const SamplingParams& sampling) {
  out.key("params")
      .begin_object()
      .member("temperature", sampling.temperature)
      .member("top_k", sampling.top_k)
      .member("top_p", sampling.top_p)
      .member("min_p", sampling.min_p)
      .member("top_n_sigma", sampling.top_n_sigma)
      .member("typical_p", sampling.typical_p)
      .member("xtc_probability", sampling.xtc_probability)
      .member("xtc_threshold", sampling.xtc_threshold)
      .member("dry_multiplier", sampling.dry.multiplier)
      .member("repeat_penalty", sampling.repetition_penalty)
      .member("presence_penalty", sampling.presence_penalty)
      .member("frequency_penalty", sampling.frequency_penalty)
      .end_object();
}

// "/v1/models/{id}" as "get_v1_models_id".
std::string operation_of(const RouteRow& row) {
  std::string name(row.method);
  for (const char c : row.pattern) name += c == '/' || c == '-' || c == '.' ? '_' : c;
  std::erase_if(name, [](char c) { return c == '{' || c == '}'; });
  return lowered(name);
}

void add_operation(JsonWriter& out, const RouteRow& row) {
  out.key(lowered(row.method)).begin_object().member("operationId", operation_of(row));
  if (row.is_public) out.key("security").begin_array().end_array();
  if (row.pattern.find("{id}") != std::string_view::npos) {
    out.key("parameters").json(R"([{"name":"id","in":"path","required":true,"schema":{"type":"string"}}])");
  }
  if (row.method == "POST") {
    const bool generates = std::holds_alternative<ParseFunction>(row.function);
    out.key("requestBody").begin_object().member("required", true).key("content").begin_object();
    out.key(row.takes_files ? "multipart/form-data" : "application/json").begin_object().key("schema");
    out.json(generates ? R"({"$ref":"#/components/schemas/Generation"})" : R"({"type":"object"})");
    out.end_object().end_object().end_object();
  }
  out.key("responses").json(R"({"200":{"description":"the answer"},"default":{"description":"an error"}})");
  out.end_object();
}

// Patterns with several methods are one path.
void add_paths(JsonWriter& out) {
  std::map<std::string_view, std::vector<const RouteRow*>> paths;
  for (const RouteRow& row : route_table()) paths[row.pattern].push_back(&row);
  out.key("paths").begin_object();
  for (const auto& [pattern, rows] : paths) {
    out.key(pattern).begin_object();
    for (const RouteRow* row : rows) add_operation(out, *row);
    out.end_object();
  }
  out.end_object();
}

std::string_view json_type(OptionType type) {
  switch (type) {
    case OptionType::kFlag:
      return "boolean";
    case OptionType::kInteger:
      return "integer";
    case OptionType::kNumber:
      return "number";
    default:
      return "";  // several forms
  }
}

// The fields that all routes that generate have in common, from the table of options.
void add_fields(JsonWriter& out) {
  out.key("Generation").begin_object().member("type", "object").key("properties").begin_object();
  for (const OptionRow& row : option_table()) {
    if (row.http.name.empty() || row.http.name.find('.') != std::string_view::npos) continue;
    out.key(row.http.name).begin_object().member("description", row.help);
    if (const std::string_view type = json_type(row.type()); !type.empty()) out.member("type", type);
    if (row.type() == OptionType::kNumber) {
      const NumberRange range = http_range(row.http.name);
      out.member("minimum", range.min).member("maximum", range.max);
    }
    out.end_object();
  }
  out.end_object().end_object();
}

Reply no_response() {
  return error_reply({.status = 404,
                      .type = "not_found_error",
                      .message = "no response of this id is kept",
                      .param = "id",
                      .code = "response_not_found"});
}

}  // namespace

Reply health(Service& service, const PlainCall&) {
  if (service.phase == Phase::kReady)
    return object_reply([](JsonWriter& out) { out.member("status", "ok"); });
  const bool is_loading = service.phase == Phase::kLoading;
  Reply reply = object_reply(
      [&](JsonWriter& out) {
        out.member("status", is_loading ? "loading" : "draining");
        if (is_loading) add_loading(out, service);
      },
      503);
  reply.headers.emplace_back("Retry-After", "2");
  return reply;
}

// OpenAPI 3.1 of the routes. Requests to a proxy's path go there.
Reply openapi(Service& service, const PlainCall&) {
  return object_reply([&](JsonWriter& out) {
    out.member("openapi", "3.1.0").key("info").begin_object();
    out.member("title", "Outrider").member("version", OUTRIDER_VERSION).end_object();
    const std::string& root = service.options.root_path;
    out.key("servers").begin_array().begin_object().member("url", root.empty() ? "/" : root);
    out.end_object().end_array();
    add_paths(out);
    out.key("components").begin_object().key("schemas").begin_object();
    add_fields(out);
    out.end_object().key("securitySchemes").json(R"({"key":{"type":"http","scheme":"bearer"}})").end_object();
    out.key("security").json(R"([{"key":[]}])");
  });
}

Reply version(Service&, const PlainCall&) { return {.body = version_body()}; }

Reply ollama_tags(Service& service, const PlainCall&) { return {.body = ollama_tags_body(service.model)}; }

Reply ollama_ps(Service& service, const PlainCall&) { return {.body = ollama_ps_body(service.model)}; }

Reply ollama_version(Service&, const PlainCall&) { return {.body = ollama_version_body()}; }

Reply models(Service& service, const PlainCall&) { return {.body = models_body(service.model)}; }

Reply model(Service& service, const PlainCall& call) {
  auto body = model_body(call.argument, service.model);
  return body.ok() ? Reply{.body = std::move(body).value()} : error_reply(body.error());
}

Reply adapters(Service& service, const PlainCall&) { return {.body = adapters_body(service.model)}; }

Reply stats(Service& service, const PlainCall&) {
  const EngineStatus engine = engine_status(service);
  return object_reply([&](JsonWriter& out) {
    out.member("model", service.model.name)
        .member("drafter", service.model.info.drafter)
        .member("sources", service.model.info.sources)
        .member("uptime_s", (now_ms() - service.started_ms) / 1e3)
        .member("running", engine.running)
        .member("waiting", engine.waiting)
        .member("calls", service.calls.load())
        .member("connections", service.connections)
        .member("max_batch", service.max_batch)
        .member("max_queue", service.options.max_queue)
        .member("pages", engine.pages)
        .member("used_pages", engine.used_pages)
        .member("cached_pages", engine.cached_pages)
        .member("steps", engine.steps)
        .member("rows", engine.rows)
        .member("prompt_tokens", engine.prompt_tokens)
        .member("cached_tokens", engine.cached_tokens)
        .member("output_tokens", engine.output_tokens)
        .member("preemptions", engine.preemptions);
    add_speculation(out, engine);
  });
}

// vLLM's, which lm_eval asks for.
Reply tokenizer_info(Service& service, const PlainCall&) {
  const ServedModel& served = service.model;
  return object_reply([&](JsonWriter& out) {
    out.member("tokenizer_class", "PreTrainedTokenizerFast")
        .member("model_max_length", served.context)
        .member("vocab_size", served.vocab_size)
        .member("bos_token", text_or_null(served.bos_token))
        .member("eos_token", text_or_null(served.eos_token))
        .key("pad_token")
        .null()
        .member("chat_template", text_or_null(template_source(served)));
  });
}

// llama-server's, with the members that have a meaning here.
Reply props(Service& service, const PlainCall&) {
  const ServedModel& served = service.model;
  return object_reply([&](JsonWriter& out) {
    out.key("default_generation_settings").begin_object().member("n_ctx", served.context);
    add_sampling(out, served.sampling);
    out.end_object().member("total_slots", service.max_batch).member("model_alias", served.name);
    out.key("modalities").begin_object().member("vision", false).member("audio", false).end_object();
    out.member("chat_template", template_source(served))
        .member("bos_token", served.bos_token)
        .member("eos_token", served.eos_token)
        .member("is_sleeping", false);
  });
}

// llama-server's; the places of the batch, of which as many are busy as sequences run.
Reply slots(Service& service, const PlainCall&) {
  const int running = static_cast<int>(engine_status(service).running);
  Reply reply;
  JsonWriter out(reply.body);
  out.begin_array();
  for (int i = 0; i < service.max_batch; ++i) {
    out.begin_object().member("id", i).member("n_ctx", service.model.context);
    out.member("is_processing", i < running).end_object();
  }
  out.end_array();
  return reply;
}

Reply metrics(Service& service, const PlainCall&) {
  return {
      .content_type = "text/plain; version=0.0.4; charset=utf-8",
      .body = service.metrics.text(
          {.model = service.model.name,
           .engine = engine_status(service),
           .waiting_calls = service.calls.preparing(),
           .connections = service.connections,
           .drafting_sessions = static_cast<int>(service.drafting.size()),
           .batches = service.batches == nullptr ? std::nullopt : std::optional(service.batches->figures()),
           .audit_lost = service.audit == nullptr ? std::nullopt : std::optional(service.audit->lost()),
           .process = process_usage()})};
}

Reply chat_page(Service& service, const PlainCall&) {
  Reply reply{.content_type = "text/html; charset=utf-8", .body = std::string(service.chat_html())};
  // The page itself contains the rest of its policy.
  reply.headers.emplace_back("Content-Security-Policy",
                             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  reply.headers.emplace_back("Referrer-Policy", "no-referrer");
  return reply;
}

Reply cancel(Service& service, const PlainCall& call) {
  if (service.engine != nullptr && service.calls.cancel(call.argument, call.scope, *service.engine)) {
    return object_reply([&](JsonWriter& out) {
      out.member("id", call.argument).member("object", "request.cancelled").member("cancelled", true);
    });
  }
  return error_reply({.status = 404,
                      .type = "not_found_error",
                      .message = "no request of this id is running",
                      .param = "id",
                      .code = "request_not_found"});
}

Reply stored_response(Service& service, const PlainCall& call) {
  const auto stored = service.responses.find(call.scope, call.argument);
  return stored == nullptr ? no_response() : Reply{.body = stored->body};
}

Reply response_input(Service& service, const PlainCall& call) {
  const auto stored = service.responses.find(call.scope, call.argument);
  if (stored == nullptr) return no_response();
  return {.body = R"({"object":"list","data":)" + stored->input +
                  R"(,"first_id":null,"last_id":null,"has_more":false})"};
}

Reply delete_response(Service& service, const PlainCall& call) {
  if (!service.responses.erase(call.scope, call.argument)) return no_response();
  return object_reply([&](JsonWriter& out) {
    out.member("id", call.argument).member("object", "response").member("deleted", true);
  });
}

}  // namespace outrider
