// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// Where an OpenAI-compatible server listens: "http://127.0.0.1:8080/api" has the root "/api".
struct ServerAddress {
  std::string host;  // without the brackets of an IPv6 address
  std::string port = "80";
  std::string root;  // before "/v1/..."; without a slash at its end
  std::string text() const;
};

// Error: no http:// address. A last part "/v1" is taken off, since other tools want it there.
Result<ServerAddress> parse_server_address(std::string_view url);

struct LoadPrompt {
  std::string id;
  std::vector<std::string> turns;  // in turn from user and assistant, the last one the user's
};

enum class LoadEndpoint : uint8_t { kChat, kCompletions };

// What a request has to keep to count for goodput; milliseconds.
struct LatencyGoals {
  std::optional<double> ttft = {}, tpot = {}, e2e = {};
  bool any() const { return ttft || tpot || e2e; }
};

// "ttft:200,tpot:50,e2e:2000", each at most once.
Result<LatencyGoals> parse_latency_goals(std::string_view text);

// One run at one load: so many requests at a time, or so many begun per second on average.
struct LoadLevel {
  int concurrency = 0;      // 0: by rate
  double request_rate = 0;  // per second, arrivals of a Poisson process
  std::string name() const;
};

struct LoadPlan {
  ServerAddress server;
  std::string api_key;  // empty: none is sent
  std::string model;    // empty: the first of /v1/models
  LoadEndpoint endpoint = LoadEndpoint::kChat;
  std::vector<LoadPrompt> prompts;  // used in turn; not empty
  std::vector<LoadLevel> levels;
  int64_t requests = 0;   // per level; 0 without a duration: every prompt once, and four per place at least
  double duration_s = 0;  // no request begins later; 0: no such end
  int64_t warmup = 0;     // requests before the first level, not measured
  int64_t max_tokens = 128;
  double temperature = 0;
  uint64_t seed = 0;  // of arrivals; request number i is sent with seed + i
  bool ignore_eos = false;
  double timeout_s = 600;  // of one request
  LatencyGoals goals;
};

}  // namespace outrider
