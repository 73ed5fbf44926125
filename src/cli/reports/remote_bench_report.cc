// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/remote_bench_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace outrider {
namespace {

double per_token(int64_t count, const NetworkMeasurement& m) {
  return static_cast<double>(count) / static_cast<double>(m.tokens);
}

double tokens_per_call(const NetworkMeasurement& m) {
  return static_cast<double>(m.tokens) / static_cast<double>(m.counts.verdicts);
}

std::string rate_text(const DecodeTime& time) {
  return time.rate() ? fmt::format("{:.1f}", *time.rate()) : "-";
}

nlohmann::ordered_json rate_json(const DecodeTime& time) {
  return time.rate() ? nlohmann::ordered_json(*time.rate()) : nlohmann::ordered_json();
}

// Drafting over streaming.
std::string ratio_text(const NetworkMeasurement& m) {
  const auto drafted = m.drafted.rate(), streamed = m.streamed.rate();
  return drafted && streamed ? fmt::format("{:.2f}x", *drafted / *streamed) : "-";
}

}  // namespace

nlohmann::ordered_json remote_bench_json(const RemoteBench& bench) {
  nlohmann::ordered_json json = {
      {"bench", "remote"}, {"server", bench.server}, {"drafter", bench.drafter}, {"prompts", bench.prompts}};
  json["local_tokens_per_second"] = rate_json(bench.local);
  json["networks"] = nlohmann::ordered_json::array();
  for (const NetworkMeasurement& m : bench.networks) {
    json["networks"].push_back({{"network", m.network},
                                {"tokens", m.tokens},
                                {"tokens_per_second", rate_json(m.drafted)},
                                {"streaming_tokens_per_second", rate_json(m.streamed)},
                                {"server_calls", m.counts.verdicts},
                                {"tokens_per_call", tokens_per_call(m)},
                                {"bytes_sent_per_token", per_token(m.counts.bytes_sent, m)},
                                {"bytes_received_per_token", per_token(m.counts.bytes_received, m)},
                                {"ahead", m.counts.ahead},
                                {"ahead_used", m.counts.ahead_used},
                                {"reconnects", m.counts.reconnects},
                                {"network_ms", m.counts.network_ms},
                                {"server_ms", m.counts.server_ms}});
  }
  return json;
}

std::string remote_bench_text(const RemoteBench& bench) {
  std::string text = fmt::format(
      "{} drafts here, {} verifies; {} prompts\nplain decoding on this machine: {} tok/s; rates are "
      "those after the first tokens of a prompt\n\n",
      bench.drafter, bench.server, bench.prompts, rate_text(bench.local));
  text += fmt::format("{:>8} {:>7} {:>8} {:>12} {:>10} {:>9} {:>7} {:>9} {:>9} {:>12}\n", "network", "tokens",
                      "tok/s", "streamed t/s", "of streamed", "tok/call", "calls", "up B/tok", "down B/tok",
                      "ahead, used");
  for (const NetworkMeasurement& m : bench.networks) {
    text += fmt::format("{:>8} {:>7} {:>8} {:>12} {:>11} {:>9.2f} {:>7} {:>9.1f} {:>10.1f} {:>6}, {:>4}\n",
                        m.network, m.tokens, rate_text(m.drafted), rate_text(m.streamed), ratio_text(m),
                        tokens_per_call(m), m.counts.verdicts, per_token(m.counts.bytes_sent, m),
                        per_token(m.counts.bytes_received, m), m.counts.ahead, m.counts.ahead_used);
  }
  return text;
}

}  // namespace outrider
