// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/access/fleet_key.h"
#include "server/api/api_error.h"
#include "server/fleet/engine_process.h"
#include "server/fleet/fleet_options.h"
#include "server/telemetry/audit_log.h"

namespace outrider {

// kLeaving: it takes no further requests and ends after those in progress. kStopping: it was told to end.
enum class EngineState : uint8_t { kUnloaded, kLoading, kLoaded, kLeaving, kStopping, kFailed };
inline constexpr std::array<std::string_view, 6> kEngineStates = {"unloaded",  "loading",   "loaded",
                                                                  "unloading", "unloading", "failed"};

// A model of the fleet and its engine.
struct FleetMember {
  using Clock = std::chrono::steady_clock;

  FleetModel model;
  std::string socket;  // of its engine
  EngineState state = EngineState::kUnloaded;
  std::unique_ptr<EngineProcess> process = nullptr;  // null: none runs
  std::vector<std::string> started_with = {};        // arguments of its last engine
  int users = 0;                                     // requests that the engine answers
  int64_t resident_bytes = 0;                        // measured last
  int64_t starts = 0, failures = 0, requests = 0;
  int failures_in_a_row = 0;
  bool must_reload = false;            // keys changed while it was loaded
  bool is_gone = false;                // it is in the list no longer, and stays for requests that came before
  bool is_asked = false;               // it shall be loaded although no request waits for it
  std::string problem = {};            // why the last engine ended before it was ready; empty: it did not
  Clock::time_point wanted_at = {};    // when a request last waited for it
  Clock::time_point waits_since = {};  // since when requests wait for it
  Clock::time_point ready_at = {};
  Clock::time_point used_at = {};
  Clock::time_point may_start_at = {};
  Clock::time_point kill_at = {};  // of kStopping

  // Takes over an entry of a new list. True: it has other options.
  bool take(FleetModel other);
  void leave_list();
  bool is_outdated() const { return process != nullptr && started_with != model.arguments; }
  std::string_view state_name() const { return kEngineStates[static_cast<size_t>(state)]; }
  // Memory that counts for it while it runs.
  int64_t bytes() const { return std::max(model.bytes, resident_bytes); }
};

using MemberPointer = std::shared_ptr<FleetMember>;

// How many models a new list brings, leaves out, and has with other options.
struct FleetChange {
  int added = 0, gone = 0, changed = 0;
};

// Engines for several models. Each is a process, which starts when a request waits for its model. Where
// memory is short, models are loaded in the order in which requests began to wait, and the engine leaves that
// was used least recently. An engine that ends by itself takes no other with it and is started again, after a
// pause that doubles. Only the I/O thread uses a fleet.
class Fleet {
 public:
  using Clock = FleetMember::Clock;
  template <typename T>
  using Task = boost::asio::awaitable<T>;

  Fleet(boost::asio::io_context* io, FleetOptions options);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // Error: there is no place for the sockets of the engines.
  Status open();
  // Starts the watch over the engines, and loads the pinned models.
  void start();
  // Ends all engines, and the requests in progress with them. Returns when none runs.
  Task<void> stop();
  // Lets all engines read keys again.
  void reload();
  // Where models that are loaded, unloaded or fail are told; null: nowhere.
  void set_audit(AuditLog* audit) { audit_ = audit; }

  // Takes over a new list. A model that is gone ends after the requests that were there before, and one with
  // other options starts again when it is next idle.
  FleetChange update(std::vector<FleetModel> models);

  // A coroutine has to copy the list before it waits.
  const std::vector<MemberPointer>& members() const { return members_; }
  const FleetOptions& options() const { return options_; }
  // "2 models, a by default, 12.3 GB for engines: a, b"
  std::string summary() const;
  // Memory of all engines that run.
  int64_t used_bytes() const;
  // Requests in progress, and those whose key has this scope.
  int running() const { return running_; }
  int running_of(uint64_t scope) const;
  const FleetKey& key() const { return key_; }

  // The model of a name; an empty name means the default or only one. Error: there is none.
  ApiResult<MemberPointer> find(std::string_view name) const;
  // Takes a place at the engine. False: the engine is not ready, and it is loaded because of this call, which
  // is to be repeated at least twice a second. Error: it could not be started.
  ApiResult<bool> enter(FleetMember& member, uint64_t scope);
  // This is enter() for the line of a batch. The engine is loaded only where no other request waits for one,
  // and where that takes no engine away that was used in the last seconds.
  ApiResult<bool> enter_in_background(FleetMember& member, uint64_t scope);
  void leave(FleetMember& member, uint64_t scope);
  // Loads and unloads a model although no request asks for that. Error: the model cannot be loaded.
  std::optional<ApiError> load(FleetMember& member);
  void unload(FleetMember& member);

 private:
  MemberPointer make_member(FleetModel model);
  void want(FleetMember& member, Clock::time_point now);
  bool take_place(FleetMember& member, uint64_t scope);
  bool may_load_in_background(const FleetMember& member, Clock::time_point now) const;
  void plan();
  void forget_gone();
  void unload_idle(Clock::time_point now);
  MemberPointer next_to_start(Clock::time_point now) const;
  bool is_running(const FleetMember& member) const;
  bool fits(const FleetMember& member) const;
  bool fits_beside_pinned(const FleetMember& member) const;
  // Why the model cannot be loaded now, not even later by itself; nullopt: it can.
  std::optional<ApiError> refusal(const FleetMember& member, Clock::time_point now) const;
  void make_room(const FleetMember& member, Clock::time_point now);
  MemberPointer victim(Clock::time_point now) const;
  void launch(const MemberPointer& member);
  void end(FleetMember& member);
  void on_end(FleetMember& member, const std::string& ending);
  void tell(std::string_view action, const FleetMember& member, const std::string& error = {}) const;
  Task<void> watch();
  Task<void> watch_process(MemberPointer member);
  Task<void> wait_until_ready(MemberPointer member, int64_t start);
  Task<bool> is_healthy(MemberPointer member);
  Task<void> sleep(Clock::duration time);

  boost::asio::io_context* io_;
  FleetOptions options_;
  FleetKey key_;
  std::filesystem::path folder_;  // of the sockets
  std::vector<MemberPointer> members_;
  int sockets_ = 0;  // that were named
  std::unordered_map<uint64_t, int> running_by_scope_;
  int running_ = 0;
  bool is_closed_ = false;
  AuditLog* audit_ = nullptr;
};

}  // namespace outrider
