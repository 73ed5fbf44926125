// SPDX-License-Identifier: Apache-2.0
#include "server/http/router.h"

#include <array>
#include <optional>

#include "remote/protocol/messages.h"

namespace outrider {
namespace {

constexpr std::string_view kPlaceholder = "{id}";

constexpr std::array kRoutes = {
    RouteRow{Route::kPage, "GET", "/"},
    RouteRow{Route::kHealth, "GET", "/health"},
    RouteRow{Route::kMetrics, "GET", "/metrics"},
    RouteRow{Route::kVersion, "GET", "/version"},
    RouteRow{Route::kStats, "GET", "/stats"},
    RouteRow{Route::kModels, "GET", "/v1/models", true},
    RouteRow{Route::kModel, "GET", "/v1/models/{id}", true},
    RouteRow{Route::kChatCompletions, "POST", "/v1/chat/completions", true},
    RouteRow{Route::kCompletions, "POST", "/v1/completions", true},
    RouteRow{Route::kResponses, "POST", "/v1/responses", true},
    RouteRow{Route::kMessages, "POST", "/v1/messages", true},
    RouteRow{Route::kInfill, "POST", "/infill", true},
    RouteRow{Route::kDeleteResponse, "DELETE", "/v1/responses/{id}", true},
    RouteRow{Route::kResponse, "GET", "/v1/responses/{id}", true},
    RouteRow{Route::kResponseInput, "GET", "/v1/responses/{id}/input_items", true},
    RouteRow{Route::kChatTokens, "POST", "/v1/chat/completions/input_tokens", true},
    RouteRow{Route::kResponseTokens, "POST", "/v1/responses/input_tokens", true},
    RouteRow{Route::kMessageTokens, "POST", "/v1/messages/count_tokens", true},
    RouteRow{Route::kTokenize, "POST", "/tokenize", true},
    RouteRow{Route::kDetokenize, "POST", "/detokenize", true},
    RouteRow{Route::kApplyTemplate, "POST", "/apply-template", true},
    RouteRow{Route::kEmbeddings, "POST", "/v1/embeddings", true},
    RouteRow{Route::kRerank, "POST", "/v1/rerank", true},
    RouteRow{Route::kRerank, "POST", "/v1/reranking", true},
    RouteRow{Route::kTokenizerInfo, "GET", "/tokenizer_info", true},
    RouteRow{Route::kProps, "GET", "/props", true},
    RouteRow{Route::kSlots, "GET", "/slots", true},
    RouteRow{Route::kCancel, "POST", "/v1/requests/{id}/cancel", true},
    RouteRow{Route::kDrafting, "GET", kDraftingPath, true},
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

}  // namespace

std::span<const RouteRow> route_table() { return kRoutes; }

namespace {

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

RouteMatch match_route(std::string_view method, std::string_view path) {
  if (method == "HEAD") method = "GET";
  RouteMatch match = match_exactly(method, path);
  return match.allowed.empty() ? match_exactly(method, "/v1" + std::string(path)) : match;
}

}  // namespace outrider
