// SPDX-License-Identifier: Apache-2.0
#include "server/http/router.h"

#include <algorithm>
#include <optional>

#include "base/quote.h"
#include "remote/protocol/messages.h"
#include "server/api/adapter_routes.h"
#include "server/api/answers/text_routes.h"
#include "server/api/ollama/ollama_calls.h"
#include "server/api/ollama/ollama_models.h"

namespace outrider {
namespace {

constexpr std::string_view kPlaceholder = "{id}";

// A route with the action that its requests have in the audit log.
constexpr RouteRow audited(std::string_view action, RouteRow row) {
  row.action = action;
  return row;
}

constexpr RouteRow kRoutes[] = {
    {"GET", "/", chat_page, false},
    {"GET", "/health", health, false, true},
    {"GET", "/healthz", health, false, true},
    {"GET", "/v1/health", health, false, true},
    {"GET", "/ping", health, false, true},
    {"GET", "/metrics", metrics, false},
    {"GET", "/version", version, false},
    {"GET", "/openapi.json", openapi, false},
    {"GET", "/stats", stats, false},
    {"GET", "/v1/models", models},
    {"GET", "/v1/models/{id}", model},
    audited("model_load", {"POST", "/v1/models/load", one_model_body}),
    audited("model_unload", {"POST", "/v1/models/unload", one_model_body}),
    audited("adapter_load", {"POST", "/v1/load_lora_adapter", load_adapter_body}),
    audited("adapter_unload", {"POST", "/v1/unload_lora_adapter", unload_adapter_body}),
    {"GET", "/lora-adapters", adapters},
    audited("adapters_scale", {"POST", "/lora-adapters", set_adapters_body}),
    {"POST", "/v1/chat/completions", parse_chat},
    {"POST", "/v1/completions", parse_completion},
    {"POST", "/v1/responses", parse_responses},
    {"POST", "/v1/messages", parse_messages},
    {"POST", "/infill", parse_infill},
    audited("response_delete", {"DELETE", "/v1/responses/{id}", delete_response}),
    audited("response_read", {"GET", "/v1/responses/{id}", stored_response}),
    audited("response_read", {"GET", "/v1/responses/{id}/input_items", response_input}),
    {"POST", "/v1/chat/completions/input_tokens", chat_tokens_body},
    {"POST", "/v1/responses/input_tokens", response_tokens_body},
    {"POST", "/v1/messages/count_tokens", message_tokens_body},
    {"POST", "/tokenize", tokenize_body},
    {"POST", "/detokenize", detokenize_body},
    {"POST", "/apply-template", apply_template_body},
    {"POST", "/v1/embeddings", parse_embeddings},
    {"POST", "/v1/rerank", parse_rerank},
    {"POST", "/v1/reranking", parse_rerank},
    {"POST", "/completion", parse_llama_completion},
    {"POST", "/api/chat", parse_ollama_chat},
    {"POST", "/api/generate", parse_ollama_generate},
    {"POST", "/api/embed", parse_ollama_embed},
    {"POST", "/api/embeddings", parse_ollama_embeddings},
    {"POST", "/api/show", ollama_show_body},
    {"GET", "/api/tags", ollama_tags},
    {"GET", "/api/ps", ollama_ps},
    {"GET", "/api/version", ollama_version, false},
    {"GET", "/tokenizer_info", tokenizer_info},
    {"GET", "/props", props},
    {"GET", "/slots", slots},
    audited("slot", {"POST", "/slots/{id}", SlotAction{}}),
    audited("request_cancel", {"POST", "/v1/requests/{id}/cancel", cancel, false}),
    audited("file_create", {"POST", "/v1/files", create_file, false, false, true}),
    {"GET", "/v1/files", list_files, false},
    {"GET", "/v1/files/{id}", stored_file, false},
    audited("file_delete", {"DELETE", "/v1/files/{id}", delete_file, false}),
    audited("file_read", {"GET", "/v1/files/{id}/content", FileContent{}, false}),
    audited("batch_create", {"POST", "/v1/batches", create_batch, false}),
    {"GET", "/v1/batches", list_batches, false},
    {"GET", "/v1/batches/{id}", stored_batch, false},
    audited("batch_cancel", {"POST", "/v1/batches/{id}/cancel", cancel_batch, false}),
    {"GET", kDraftingPath, DraftingUpgrade{}},
};

// The text that "{id}" of `pattern` matches; empty if the pattern has none; nullopt: `path` does not match.
std::optional<std::string_view> fit(std::string_view pattern, std::string_view path) {
  const size_t placeholder = pattern.find(kPlaceholder);
  if (placeholder == std::string_view::npos) {
    return pattern == path ? std::optional<std::string_view>("") : std::nullopt;
  }
  const std::string_view before = pattern.substr(0, placeholder);
  const std::string_view after = pattern.substr(placeholder + kPlaceholder.size());
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) || !path.ends_with(after)) {
    return std::nullopt;
  }
  const std::string_view argument = path.substr(before.size(), path.size() - before.size() - after.size());
  // Only the last segment may hold slashes, for names of models.
  if (!after.empty() && argument.find('/') != std::string_view::npos) return std::nullopt;
  return argument;
}

RouteMatch match_exactly(std::string_view method, std::string_view path) {
  RouteMatch match;
  for (const RouteRow& row : kRoutes) {
    const std::optional<std::string_view> argument = fit(row.pattern, path);
    if (!argument) continue;
    if (match.allowed.find(row.method) == std::string::npos) {
      match.allowed.append(match.allowed.empty() ? "" : ", ").append(row.method);
    }
    if (row.method != method) continue;
    match.row = &row;
    match.argument = *argument;
  }
  return match;
}

}  // namespace

std::span<const RouteRow> route_table() { return kRoutes; }

bool is_route(const RouteRow& row, std::string_view name) {
  return row.pattern == name || row.pattern == "/v1" + std::string(name);
}

Status check_routes(std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (std::ranges::any_of(kRoutes, [&](const RouteRow& row) { return is_route(row, name); })) continue;
    return usage_error("--no-log-routes: expected routes such as /health,/metrics, found " + quote(name));
  }
  return {};
}

RouteMatch match_route(std::string_view method, std::string_view path) {
  if (method == "HEAD") method = "GET";
  RouteMatch match = match_exactly(method, path);
  return match.allowed.empty() ? match_exactly(method, "/v1" + std::string(path)) : match;
}

}  // namespace outrider
