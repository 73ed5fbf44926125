// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "config/settings.h"
#include "open/parts.h"
#include "remote/protocol/messages.h"
#include "server/access/api_keys.h"
#include "server/access/fleet_key.h"
#include "server/access/key_quotas.h"
#include "server/access/request_header.h"
#include "server/api/response_store.h"
#include "server/api/served_model.h"
#include "server/batch/batches.h"
#include "server/batch/fleet_lines.h"
#include "server/calls/drafting_sessions.h"
#include "server/calls/engine_loop.h"
#include "server/calls/line_calls.h"
#include "server/calls/live_calls.h"
#include "server/calls/preparation_worker.h"
#include "server/fleet/fleet.h"
#include "server/http/limits.h"
#include "server/telemetry/audit_log.h"
#include "server/telemetry/server_metrics.h"
#include "server/telemetry/trace_exporter.h"

namespace outrider {

enum class Phase : uint8_t { kLoading, kReady, kDraining };

// The state that all connections share. Only the I/O thread uses it.
struct Service {
  ServerOptions options;
  HttpLimits limits;
  AllowedHosts hosts;
  ApiKeys keys;
  FleetKey fleet_key;                              // of the fleet whose engine this is
  std::shared_ptr<boost::asio::ssl::context> tls;  // of new connections; null: they are plain
  std::function<std::string_view()> chat_html;

  Phase phase = Phase::kLoading;
  double started_ms = 0;
  std::shared_ptr<const std::atomic<LoadStage>> load_stage;  // null: unknown
  ResponseStore responses;
  ServedModel model;  // set once it is loaded
  VocabularyFingerprint vocabulary = {};

  ServerMetrics metrics;
  std::unique_ptr<KeyQuotas> quotas;      // null: keys have none
  std::unique_ptr<TraceExporter> traces;  // null: nobody collects them
  std::unique_ptr<AuditLog> audit;        // null: there is none
  LiveCalls calls;
  DraftingSessions drafting;
  std::unique_ptr<PreparationWorkers> workers;
  std::unique_ptr<EngineLoop> engine;
  std::unique_ptr<Fleet> fleet;                       // null: this process is the engine of the one model
  std::unique_ptr<Batches> batches = nullptr;         // null: there is no Batch API
  std::unique_ptr<LineCalls> lines = nullptr;         // of the batches, once the model is loaded
  std::unique_ptr<FleetLines> fleet_lines = nullptr;  // the same of a fleet

  int max_batch = 0;
  int connections = 0;
  std::atomic<size_t> bodies_bytes = 0;  // of all bodies that are being read or prepared
  bool is_closing = false;               // connections close after their request
};

}  // namespace outrider
