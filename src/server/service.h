// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "config/settings.h"
#include "engine/open_parts.h"
#include "server/api/served_model.h"
#include "server/engine_loop.h"
#include "server/http/api_keys.h"
#include "server/http/limits.h"
#include "server/http/request_header.h"
#include "server/live_calls.h"
#include "server/preparation_worker.h"
#include "server/server_metrics.h"

namespace outrider {

enum class Phase : uint8_t { kLoading, kReady, kDraining };

// What all connections share. Of the I/O thread alone.
struct Service {
  ServerOptions options;
  HttpLimits limits;
  HostNames hosts;
  ApiKeys keys;
  std::function<std::string_view()> page;

  Phase phase = Phase::kLoading;
  double started_ms = 0;
  std::shared_ptr<const std::atomic<LoadStage>> load_stage;  // null: not told
  ServedModel model;                                         // once it is loaded

  ServerMetrics metrics;
  LiveCalls calls;
  std::unique_ptr<PreparationWorker> worker;
  std::unique_ptr<EngineLoop> engine;

  int max_batch = 0;
  int connections = 0;
  size_t bodies_bytes = 0;  // of requests being read
  bool is_closing = false;  // connections end with their request
};

// 32 random hexadecimal digits.
std::string random_id();

}  // namespace outrider
