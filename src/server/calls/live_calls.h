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

#include "server/api/generation_call.h"
#include "server/calls/engine_loop.h"
#include "server/telemetry/request_log.h"
#include "server/telemetry/server_metrics.h"

namespace outrider {

// A call from its head to its last news. Of the I/O thread alone, but for `generation` while it is prepared.
struct LiveCall {
  CallNumber number = 0;
  std::string id;          // ours, hard to guess
  std::string request_id;  // the client's, or `id`
  std::string route;
  uint64_t scope = 0;
  double arrived_ms = 0;

  std::unique_ptr<GenerationCall> generation;
  std::string events;             // rendered, not yet taken by the writer
  size_t writing_bytes = 0;       // taken, not yet sent
  std::function<void()> wake;     // the session waits for changes
  bool is_accepted = false;       // the engine has it
  bool is_finished = false;       // every choice
  bool is_abandoned = false;      // nobody waits for it
  std::optional<ApiError> error;  // in place of what is still missing

  // Of LiveCalls:
  std::vector<std::optional<ChoiceDelta>> held;  // by choice: news that came while `events` was full
  size_t unfinished = 0;
  double last_token_ms = 0;
  int status = 200;
  CallTotals totals;
};

// All calls under way: admission, delivery of news, cancellation.
class LiveCalls {
 public:
  struct Limits {
    int calls = 0;            // reading, prepared, queued and running sequences together
    size_t stream_bytes = 0;  // of events waiting for one reader
  };
  explicit LiveCalls(const Limits& limits) : limits_(limits) {}
  void set_metrics(ServerMetrics* metrics) { metrics_ = metrics; }

  bool is_full() const { return load() >= limits_.calls; }
  // Seconds after which a client may try again.
  int retry_after() const;

  std::shared_ptr<LiveCall> open(LiveCall call);
  // For work that the engine has no part in.
  void take_place() { ++preparing_; }
  void give_place() { --preparing_; }
  // Hands the prepared requests to the engine. False: they do not fit any more; nothing was done.
  bool submit(LiveCall& call, EngineLoop& engine);
  // For calls that end before they are submitted.
  void close(LiveCall& call);
  void abandon(LiveCall& call, EngineLoop& engine);

  void deliver(std::vector<CallNews> delta);
  // Once the writer has made room.
  void release_held(LiveCall& call);

  // All calls of `scope` with this id. False: there is none.
  bool cancel(std::string_view id, uint64_t scope, EngineLoop& engine);
  // Ends every call with this error.
  void abort_all(const ApiError& error, EngineLoop* engine);

  bool empty() const { return calls_.empty(); }
  int preparing() const { return preparing_; }
  int load() const { return preparing_ + sequences_; }

 private:
  void on_progress(LiveCall& call, int choice, ChoiceDelta delta);
  void add(LiveCall& call, int choice, ChoiceDelta delta);
  void finish(LiveCall& call);

  Limits limits_;
  ServerMetrics* metrics_ = nullptr;
  std::unordered_map<CallNumber, std::shared_ptr<LiveCall>> calls_;
  CallNumber next_number_ = 1;
  int preparing_ = 0;  // calls not submitted yet
  int sequences_ = 0;  // of submitted calls
  double mean_call_seconds_ = 0;
};

}  // namespace outrider
