// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/metrics_text.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <regex>
#include <set>
#include <sstream>

#include "server/telemetry/server_metrics.h"

namespace outrider {
namespace {

TEST(MetricsText, CountersGaugesHistograms) {
  static constexpr std::array kBounds = {1.0, 2.5};
  Histogram values(kBounds);
  values.observe(1.0);
  values.observe(2.0, 3);
  values.observe(100);
  MetricsText text(MetricsText::Labels{{"model_name", "a\"b\\c\nd"}});
  text.counter("x:made", "What was made.", 3);
  text.histogram("x:seconds", "How long.", values);
  text.begin_gauge("x:kinds", "By kind.");
  text.add({{"kind", "one"}}, std::nan(""));
  const std::string label = R"(model_name="a\"b\\c\nd")";
  EXPECT_EQ(text.text(),
            "# HELP x:made_total What was made.\n# TYPE x:made_total counter\n"
            "x:made_total{" +
                label +
                "} 3\n"
                "# HELP x:seconds How long.\n# TYPE x:seconds histogram\n"
                "x:seconds_bucket{" +
                label +
                ",le=\"1\"} 1\n"
                "x:seconds_bucket{" +
                label +
                ",le=\"2.5\"} 4\n"
                "x:seconds_bucket{" +
                label +
                ",le=\"+Inf\"} 5\n"
                "x:seconds_sum{" +
                label +
                "} 107\n"
                "x:seconds_count{" +
                label +
                "} 5\n"
                "# HELP x:kinds By kind.\n# TYPE x:kinds gauge\n"
                "x:kinds{" +
                label + ",kind=\"one\"} NaN\n");
}

// As in vLLM, a step of a sequence that drafted nothing is no draft.
TEST(ServerMetrics, OnlyStepsThatDraftedAreDrafts) {
  EngineStatus engine;
  engine.speculation.steps = 10;
  engine.speculation.drafts = 4;
  engine.speculation.drafted = 12;
  const std::string text = ServerMetrics().text({.model = "m", .engine = engine});
  EXPECT_NE(text.find("\nvllm:spec_decode_num_drafts_total{model_name=\"m\",engine=\"0\"} 4\n"),
            std::string::npos)
      << text;
}

// Names that dashboards rely on.
constexpr const char* kNames[] = {"vllm:num_requests_running",
                                  "vllm:num_requests_waiting",
                                  "vllm:kv_cache_usage_perc",
                                  "vllm:prefix_cache_queries_total",
                                  "vllm:prefix_cache_hits_total",
                                  "vllm:num_preemptions_total",
                                  "vllm:prompt_tokens_total",
                                  "vllm:generation_tokens_total",
                                  "vllm:request_success_total",
                                  "vllm:time_to_first_token_seconds",
                                  "vllm:inter_token_latency_seconds",
                                  "vllm:e2e_request_latency_seconds",
                                  "vllm:request_queue_time_seconds",
                                  "vllm:request_prefill_time_seconds",
                                  "vllm:request_decode_time_seconds",
                                  "vllm:spec_decode_num_drafts_total",
                                  "vllm:spec_decode_num_draft_tokens_total",
                                  "vllm:spec_decode_num_accepted_tokens_total",
                                  "vllm:spec_decode_num_accepted_tokens_per_pos_total",
                                  "outrider:foreseen_drafts_total",
                                  "outrider:speculation_speedup_ratio",
                                  "outrider:kv_pages",
                                  "outrider:device_launches_total",
                                  "outrider:device_bytes_total",
                                  "outrider:prefix_cache_pages",
                                  "outrider:key_requests_total",
                                  "outrider:key_generation_tokens_total",
                                  "outrider_build_info",
                                  "process_cpu_seconds_total",
                                  "process_resident_memory_bytes",
                                  "process_virtual_memory_bytes",
                                  "process_start_time_seconds",
                                  "process_open_fds",
                                  "process_max_fds"};

// The checks of `promtool check metrics` hold for the whole text.
TEST(ServerMetrics, AreWellFormed) {
  ServerMetrics metrics;
  metrics.on_response(200);
  metrics.on_first_token(0.1);
  metrics.on_tokens(0.1, 4);
  metrics.on_completion({});
  CallTotals totals;
  totals.output_tokens = 5;
  metrics.on_key("team-a", totals);
  EngineStatus engine;
  engine.speculation.accepted_per_position = {5, 3};
  engine.speculation.drafted_per_position = {9, 7};
  engine.device = DeviceOrders{.launches = 1};
  const std::regex sample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? (-?[0-9.e+-]+|\+Inf|NaN))re");
  std::istringstream lines(metrics.text({.model = "m", .engine = engine}));
  std::set<std::string> families, samples;
  std::string family;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) continue;
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << "twice: " << family;
      EXPECT_EQ(family.ends_with("_total"), line.ends_with(" counter")) << line;
      continue;
    }
    std::smatch match;
    ASSERT_TRUE(std::regex_match(line, match, sample)) << line;
    EXPECT_TRUE(match[1].str().starts_with(family)) << line;
    EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << "twice: " << line;
  }
  for (const char* name : kNames) {
    EXPECT_EQ(families.count(name), 1u) << name;
  }
}

TEST(ServerMetrics, OrdersToADevice) {
  EngineStatus engine;
  const ServerMetrics metrics;
  EXPECT_EQ(metrics.text({.model = "m", .engine = engine}).find("outrider:device"), std::string::npos);
  engine.device = DeviceOrders{
      .launches = 7, .lists = 5, .bytes_to = 300, .bytes_from = 20, .allocations = 2, .waited_ms = 500};
  const std::string text = metrics.text({.model = "m", .engine = engine});
  const std::string labels = R"({model_name="m",engine="0")";
  for (const std::string& line :
       {"outrider:device_launches_total" + labels + "} 7\n", "outrider:device_lists_total" + labels + "} 5\n",
        "outrider:device_bytes_total" + labels + R"(,direction="to"} 300)" + "\n",
        "outrider:device_bytes_total" + labels + R"(,direction="from"} 20)" + "\n",
        "outrider:device_allocations_total" + labels + "} 2\n",
        "outrider:device_waited_seconds_total" + labels + "} 0.5\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

}  // namespace
}  // namespace outrider
