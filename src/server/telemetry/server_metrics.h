// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/engine.h"
#include "platform/process_usage.h"
#include "server/telemetry/metrics_text.h"
#include "server/telemetry/request_log.h"

namespace outrider {

// The reasons for which the server closes a connection.
enum class DropReason : uint8_t { kSlowReader, kSlowHeader, kSlowBody, kTooMany, kReadAhead, kHandshake };
inline constexpr std::array<std::string_view, 6> kDropReasons = {
    "slow_reader", "slow_header", "slow_body", "too_many_connections", "read_ahead", "tls_handshake"};

// The work of a server for the Batch API.
struct BatchFigures {
  std::vector<std::pair<std::string_view, int64_t>> batches;  // their number, by status
  int64_t completed = 0, failed = 0;                          // lines since the start
  int64_t running = 0;                                        // lines that run
};

// The families about batches, and about lines that the audit log has lost.
void add_batches(MetricsText& text, const BatchFigures& figures);
void add_audit_lost(MetricsText& text, int64_t lines);

// The counters of the server; EngineStatus has the engine's. Only the I/O thread uses them.
class ServerMetrics {
 public:
  ServerMetrics();

  void on_response(int status) { ++responses_[status]; }
  void on_drop(DropReason reason) { ++drops_[static_cast<size_t>(reason)]; }
  void on_disconnect() { ++disconnects_; }
  void on_drafting_connection() { ++drafting_connections_, ++drafting_connects_; }
  void on_drafting_disconnection() { --drafting_connections_; }
  void on_drafting_resume() { ++drafting_resumes_; }
  // Payloads of the drafting protocol, from and to its clients.
  void on_drafting_bytes(size_t in, size_t out) {
    drafting_in_ += static_cast<int64_t>(in);
    drafting_out_ += static_cast<int64_t>(out);
  }
  void on_first_token(double seconds) { first_token_.observe(seconds); }
  // `tokens` tokens arrived together, `seconds` after the ones before.
  void on_tokens(double seconds, int64_t tokens) {
    inter_token_.observe(seconds / static_cast<double>(tokens), tokens);
  }
  void on_completion(const Completion& completion);
  void on_call(double seconds) { end_to_end_.observe(seconds); }
  // A call that ended, by the name of its key. There are as many names as keys.
  void on_key(const std::string& key, const CallTotals& totals);

  int64_t drops(DropReason reason) const { return drops_[static_cast<size_t>(reason)]; }

  struct Now {
    std::string model;
    EngineStatus engine;
    int waiting_calls = 0;  // calls that the engine does not have yet
    int connections = 0;
    int drafting_sessions = 0;
    std::optional<BatchFigures> batches = {};  // nullopt: there is no Batch API
    std::optional<int64_t> audit_lost = {};    // lines; nullopt: there is no audit log
    ProcessUsage process = {};
  };
  std::string text(const Now& now) const;

 private:
  void add_requests(MetricsText& text) const;
  void add_keys(MetricsText& text) const;
  void add_connections(MetricsText& text, const Now& now) const;

  struct KeyTotals {
    int64_t calls = 0;
    int64_t prompt_tokens = 0;
    int64_t output_tokens = 0;
  };

  std::map<int, int64_t> responses_;  // by HTTP status
  std::map<std::string, KeyTotals> keys_;
  std::array<int64_t, kDropReasons.size()> drops_ = {};
  std::array<int64_t, 4> finished_ = {};  // by FinishReason
  int64_t disconnects_ = 0;
  int64_t drafting_connections_ = 0, drafting_connects_ = 0;  // open ones, and all
  int64_t drafting_resumes_ = 0, drafting_in_ = 0, drafting_out_ = 0;
  Histogram first_token_, inter_token_, end_to_end_, queue_, prefill_, decode_, inference_;
  Histogram prompt_tokens_, output_tokens_;
};

}  // namespace outrider
