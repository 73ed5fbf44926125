// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/api/api_error.h"
#include "server/api/generation_call.h"
#include "server/calls/engine_loop.h"
#include "server/telemetry/request_log.h"
#include "server/telemetry/server_metrics.h"

namespace outrider {

class KeyQuotas;
class TraceExporter;

// A call from its header to its last delta. Only the I/O thread uses it, except for `generation`, which the
// preparation worker makes.
struct LiveCall {
  CallNumber number = 0;
  std::string id;          // the server's own, hard to guess
  std::string request_id;  // the client's, or `id`
  std::string method = "POST";
  std::string route;
  uint64_t scope = 0;
  double arrived_ms = 0;
  RequestClient client = {};
  std::string model = {};      // the served name, for the log
  bool is_logged = true;       // its line is written
  bool has_time_limit = true;  // --request-timeout ends it
  bool is_background = false;  // it takes no place in the queue, and its times are in no metric

  std::unique_ptr<GenerationCall> generation;
  std::string events;             // rendered events that the writer has not taken yet
  size_t writing_bytes = 0;       // bytes that the writer has taken and not sent yet
  std::function<void()> wake;     // wakes the connection that waits for changes
  bool is_accepted = false;       // by the engine
  bool is_finished = false;       // all choices are
  bool is_abandoned = false;      // its client is gone
  bool is_cancelled = false;      // the engine was told so
  std::optional<ApiError> error;  // ends the call instead of the rest of its answer

  // The following members are for LiveCalls only.
  std::vector<std::optional<ChoiceDelta>> held;  // by choice: merged deltas that came while `events` was full
  size_t unfinished = 0;
  double last_token_ms = 0;
  int status = 200;
  CallTotals totals;
};

// All calls in progress: admission, delivery of updates, cancellation.
class LiveCalls {
 public:
  struct Limits {
    int calls = 0;            // calls in preparation plus queued and running sequences
    size_t stream_bytes = 0;  // bytes of events that wait for one client
  };
  explicit LiveCalls(const Limits& limits) : limits_(limits) {}
  void set_metrics(ServerMetrics* metrics) { metrics_ = metrics; }
  // null: there are none
  void set_quotas(KeyQuotas* quotas) { quotas_ = quotas; }
  void set_traces(TraceExporter* traces) { traces_ = traces; }

  int limit() const { return limits_.calls; }  // sequences of all calls together
  bool is_full() const { return load() >= limits_.calls; }
  // Seconds after which a refused client may try again.
  int retry_after() const;

  std::shared_ptr<LiveCall> open(LiveCall call);
  // Count work without the engine, such as tokenization, as a call in preparation.
  void take_place() { ++preparing_; }
  void give_place() { --preparing_; }
  // Hands the prepared requests to the engine. False: the queue is full, and nothing was done; never for a
  // call in the background.
  bool submit(LiveCall& call, EngineLoop& engine);
  // Forgets a call that ends before it was submitted.
  void close(LiveCall& call);
  void abandon(LiveCall& call, EngineLoop& engine);
  // Cancels the abandoned calls that abandon() had no memory to cancel.
  void cancel_abandoned(EngineLoop& engine);

  void deliver(std::vector<CallUpdate> updates);
  // Renders held deltas. To be called when the writer has taken `events`.
  void release_held(LiveCall& call);

  // Cancels all calls of `scope` with this id. False: there is none.
  bool cancel(std::string_view id, uint64_t scope, EngineLoop& engine);
  // Ends the calls that arrived before this time, on the clock of now_ms(), and have a time limit.
  void expire(double before_ms, const ApiError& error, EngineLoop& engine);
  // Ends every call with this error.
  void abort_all(const ApiError& error, EngineLoop* engine);
  // Forgets the calls whose end nobody waits for any more, and writes their lines.
  void end_all();

  bool empty() const { return calls_.empty(); }
  int preparing() const { return preparing_; }
  int load() const { return preparing_ + sequences_; }
  // The part of load() that calls with this key's scope make.
  int load_of(uint64_t scope) const;

 private:
  void take(LiveCall& call, CallUpdate& update);
  void fail(LiveCall& call, ApiError error);
  static void abort(LiveCall& call, const ApiError& error, EngineLoop* engine);
  void on_progress(LiveCall& call, int choice, ChoiceDelta delta);
  void add(LiveCall& call, int choice, ChoiceDelta delta);
  void finish(LiveCall& call);
  int& sequences(const LiveCall& call) { return call.is_background ? background_ : sequences_; }
  void log(const LiveCall& call, double seconds) const noexcept;

  Limits limits_;
  ServerMetrics* metrics_ = nullptr;
  KeyQuotas* quotas_ = nullptr;
  TraceExporter* traces_ = nullptr;
  std::unordered_map<CallNumber, std::shared_ptr<LiveCall>> calls_;
  CallNumber next_number_ = 1;
  int preparing_ = 0;   // calls that are not submitted yet
  int sequences_ = 0;   // number of unfinished choices of submitted calls
  int background_ = 0;  // the same of calls in the background
  double mean_call_seconds_ = 0;
};

}  // namespace outrider
