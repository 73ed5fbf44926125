// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/fleet/fleet.h"
#include "server/telemetry/server_metrics.h"

namespace outrider {

// The models of a fleet as JSON: in OpenAI's form with the state of each as llama-server's router tells it;
// one of them; and as Ollama's clients read them, all or only the loaded ones.
std::string fleet_models_body(Fleet& fleet, int64_t created);
std::string fleet_model_body(const FleetMember& member, std::string_view name, int64_t created);
std::string fleet_tags_body(Fleet& fleet, bool only_loaded);
// GET /stats, and what it says of one model.
std::string fleet_member_stats(const FleetMember& member);
std::string fleet_stats_body(Fleet& fleet, double uptime);
// Figures of the server before the engines.
struct FrontFigures {
  int connections = 0;
  std::optional<BatchFigures> batches = {};  // nullopt: there is no Batch API
  std::optional<int64_t> audit_lost = {};    // lines; nullopt: there is no audit log
};
// Figures of the fleet in Prometheus' text format.
std::string fleet_metrics(Fleet& fleet, const FrontFigures& front);

// Several texts in Prometheus' format as one, where each family occurs once.
std::string merged_metrics(std::span<const std::string> texts);

}  // namespace outrider
