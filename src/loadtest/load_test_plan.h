// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// The address of an OpenAI-compatible server. "http://127.0.0.1:8080/api" has the root "/api".
struct ServerAddress {
  std::string host;  // without the brackets of an IPv6 address
  std::string port = "80";
  std::string root;  // path before "/v1/...", without a slash at its end
  std::string text() const;
};

// Removes a last part "/v1", since other tools want it there. Error: no http:// address.
Result<ServerAddress> parse_server_address(std::string_view url);

struct LoadTestPrompt {
  std::string id;
  std::vector<std::string> turns;  // alternate between user and assistant; the last one is the user's
};

enum class LoadTestEndpoint : uint8_t { kChat, kCompletions };

// The latencies, in milliseconds, below which a request counts for goodput.
struct LatencyGoals {
  std::optional<double> ttft = {}, tpot = {}, e2e = {};
  bool any() const { return ttft || tpot || e2e; }
};

// Parses "ttft:200,tpot:50,e2e:2000"; each may occur once.
Result<LatencyGoals> parse_latency_goals(std::string_view text);

// One level of load: a number of concurrent requests, or an average number of new requests per second.
struct LoadTestLevel {
  int concurrency = 0;      // 0: use request_rate
  double request_rate = 0;  // new requests per second, by a Poisson process
  std::string name() const;
};

struct LoadTestPlan {
  ServerAddress server;
  std::string api_key;  // empty: none
  std::string model;    // empty: the first of /v1/models
  LoadTestEndpoint endpoint = LoadTestEndpoint::kChat;
  std::vector<LoadTestPrompt> prompts;  // used in turn, at least one
  std::vector<LoadTestLevel> levels;
  int64_t requests =
      0;  // per level; 0: no limit, or without duration_s every prompt once and at least 4 * concurrency
  double duration_s = 0;  // per level, no request begins later; 0: no limit
  int64_t warmup = 0;     // unmeasured requests before the first level
  int64_t max_tokens = 128;
  double temperature = 0;
  uint64_t seed = 0;  // of the arrivals; request number i is sent with seed + i
  bool ignore_eos = false;
  bool is_plain = false;   // asks an Outrider server to decode without speculation
  double timeout_s = 600;  // per request
  LatencyGoals goals;
};

}  // namespace outrider
