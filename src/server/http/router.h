// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace outrider {

enum class Route : uint8_t {
  kPage,
  kHealth,
  kMetrics,
  kVersion,
  kStats,
  kModels,
  kModel,
  kChatCompletions,
  kCompletions,
  kResponses,
  kMessages,
  kInfill,
  kResponse,
  kDeleteResponse,
  kResponseInput,
  kChatTokens,
  kResponseTokens,
  kMessageTokens,
  kTokenize,
  kDetokenize,
  kApplyTemplate,
  kEmbeddings,
  kRerank,
  kTokenizerInfo,
  kProps,
  kSlots,
  kCancel,
  kDrafting,
};

struct RouteRow {
  Route route;
  std::string_view method;
  std::string_view pattern;  // "{id}" matches one segment
  bool needs_model = false;  // 503 before it is loaded
};

// All routes of the server.
std::span<const RouteRow> route_table();

struct RouteMatch {
  const RouteRow* row = nullptr;  // null: no such path, or not with this method
  std::string argument;           // the text that {id} matched
  std::string allowed;            // methods of this path; empty: no such path
};
// A path without /v1 means the one with it, and HEAD means GET.
RouteMatch match_route(std::string_view method, std::string_view path);

}  // namespace outrider
