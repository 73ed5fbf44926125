// SPDX-License-Identifier: Apache-2.0
#include "server/fleet/fleet.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cmath>
#include <optional>
#include <utility>

#include "base/quote.h"
#include "config/environment.h"
#include "platform/machine_memory.h"
#include "server/fleet/engine_connection.h"
#include "server/telemetry/request_log.h"

namespace outrider {

bool FleetMember::take(FleetModel other) {
  const bool is_changed = model.arguments != other.arguments;
  is_asked = is_asked || (other.is_pinned && (is_gone || !model.is_pinned));
  is_gone = false;
  model = std::move(other);
  if (!is_changed) return false;
  may_start_at = {};  // it failed with other options
  failures_in_a_row = 0;
  return true;
}

void FleetMember::leave_list() {
  is_gone = true;
  is_asked = model.is_pinned = model.is_default = false;
}

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr auto kTick = 50ms;
constexpr auto kHealthInterval = 20ms;
constexpr auto kWanted = 1s;         // a request that waits asks again within this time
constexpr auto kWelcome = 150ms;     // in which the requests that waited for an engine come
constexpr auto kLeastStay = 1s;      // an engine with requests stays at least this long
constexpr auto kRest = 3s;           // without requests, after which an engine may leave for a batch
constexpr auto kGoodRun = 10s;       // after it a failure is the first one
constexpr auto kFirstPause = 200ms;  // before an engine that failed starts again
constexpr int kMostDoublings = 6;
constexpr auto kKillGrace = 2s;  // beyond the engine's own time to end

void log_if_failed(const std::exception_ptr& failure) {
  if (failure != nullptr) log_failure("fleet_failed", failure);
}

bool is_wanted(const FleetMember& member, FleetMember::Clock::time_point now) {
  return member.is_asked || now - member.wanted_at < kWanted;
}

double seconds(FleetMember::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

std::string names_of(const std::vector<MemberPointer>& members) {
  std::string names;
  for (const MemberPointer& member : members) {
    if (!member->is_gone) names += (names.empty() ? "" : ", ") + member->model.name;
  }
  return names;
}

}  // namespace

Fleet::Fleet(asio::io_context* io, FleetOptions options)
    : io_(io), options_(std::move(options)), key_(FleetKey::make()) {
  options_.environment.push_back(kFleetKeyVariable + ("=" + key_.text()));
}

Fleet::~Fleet() {
  for (const MemberPointer& member : members_) member->process.reset();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Status Fleet::open() {
  std::string name = (std::filesystem::temp_directory_path() / "outrider-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return io_error("cannot make a folder for sockets: " + name);
  folder_ = name;
  for (const FleetModel& model : options_.models) members_.push_back(make_member(model));
  return {};
}

MemberPointer Fleet::make_member(FleetModel model) {
  const auto member = std::make_shared<FleetMember>();
  member->is_asked = model.is_pinned || model.is_default;
  member->model = std::move(model);
  member->socket = (folder_ / std::to_string(sockets_++)).string();
  return member;
}

FleetChange Fleet::update(std::vector<FleetModel> models) {
  FleetChange change;
  std::vector<MemberPointer> before = members_, after;  // without memory for the new list the old one stays
  for (FleetModel& model : models) {
    const auto found = std::ranges::find_if(
        before, [&](const MemberPointer& member) { return member->model.name == model.name; });
    const bool is_new = found == before.end() || (*found)->is_gone;
    change.added += is_new ? 1 : 0;
    if (found == before.end()) {
      after.push_back(make_member(std::move(model)));
      continue;
    }
    const bool is_changed = (*found)->take(std::move(model));
    change.changed += is_changed && !is_new ? 1 : 0;
    after.push_back(*found);
    before.erase(found);
  }
  for (const MemberPointer& member : before) {
    change.gone += member->is_gone ? 0 : 1;
    member->leave_list();
    after.push_back(member);
  }
  members_ = std::move(after);
  plan();
  return change;
}

void Fleet::start() { asio::co_spawn(*io_, watch(), log_if_failed); }

std::string Fleet::summary() const {
  std::string usual;
  for (const MemberPointer& member : members_) {
    if (member->model.is_default) usual = ", " + member->model.name + " by default";
  }
  return fmt::format("{} model{}{}, {:.1f} GB for engines: {}", members_.size(),
                     members_.size() == 1 ? "" : "s", usual, static_cast<double>(options_.memory) / 1e9,
                     names_of(members_));
}

int64_t Fleet::used_bytes() const {
  int64_t bytes = 0;
  for (const MemberPointer& member : members_) bytes += is_running(*member) ? member->bytes() : 0;
  return bytes;
}

int Fleet::running_of(uint64_t scope) const {
  const auto found = running_by_scope_.find(scope);
  return found == running_by_scope_.end() ? 0 : found->second;
}

ApiResult<MemberPointer> Fleet::find(std::string_view name) const {
  const auto listed = [](const MemberPointer& member) { return !member->is_gone; };
  const bool is_only = std::ranges::count_if(members_, listed) == 1;
  const auto is_it = [&](const MemberPointer& member) {
    const FleetModel& model = member->model;
    if (name.empty()) return is_only || model.is_default;
    return model.name == name || std::ranges::find(model.aliases, name) != model.aliases.end();
  };
  for (const MemberPointer& member : members_) {
    if (listed(member) && is_it(member)) return member;
  }
  if (name.empty()) {
    return ApiError{.message = "expected the name of a model, found none; models: " + names_of(members_),
                    .param = "model",
                    .code = "model_required"};
  }
  return ApiError{.status = 404,
                  .message = fmt::format("no model {}; models: {}", quote(name), names_of(members_)),
                  .param = "model",
                  .code = "model_not_found"};
}

std::optional<ApiError> Fleet::refusal(const FleetMember& member, Clock::time_point now) const {
  if (!is_running(member) && !fits_beside_pinned(member)) {
    return ApiError{
        .status = 503,
        .type = "unavailable_error",
        .message = fmt::format("{} needs {} MB, and the pinned models leave less of {} MB", member.model.name,
                               member.model.bytes >> 20, options_.memory >> 20),
        .code = "no_memory"};
  }
  if (member.state == EngineState::kFailed && !member.problem.empty() && now < member.may_start_at) {
    return ApiError{.status = 503,
                    .type = "unavailable_error",
                    .message = fmt::format("the engine of {} did not start ({}); the log says why",
                                           member.model.name, member.problem),
                    .code = "model_failed",
                    .retry_after = static_cast<int>(std::ceil(seconds(member.may_start_at - now)))};
  }
  return std::nullopt;
}

void Fleet::want(FleetMember& member, Clock::time_point now) {
  if (!is_wanted(member, now)) member.waits_since = now;
  member.wanted_at = now;
  if (member.state != EngineState::kLoaded) plan();
}

ApiResult<bool> Fleet::enter(FleetMember& member, uint64_t scope) {
  const auto now = Clock::now();
  if (std::optional<ApiError> refused = refusal(member, now)) return *std::move(refused);
  want(member, now);
  return take_place(member, scope);
}

ApiResult<bool> Fleet::enter_in_background(FleetMember& member, uint64_t scope) {
  const auto now = Clock::now();
  if (std::optional<ApiError> refused = refusal(member, now)) return *std::move(refused);
  if (may_load_in_background(member, now)) want(member, now);
  return take_place(member, scope);
}

// Engines that have rested make room, as they do for any request.
bool Fleet::may_load_in_background(const FleetMember& member, Clock::time_point now) const {
  if (is_running(member)) return member.state == EngineState::kLoading;
  int64_t kept = 0;
  for (const MemberPointer& other : members_) {
    if (other.get() == &member || !is_running(*other)) continue;
    const bool rests =
        other->state == EngineState::kLoaded && other->users == 0 && now - other->used_at >= kRest;
    kept += rests && !other->model.is_pinned ? 0 : other->bytes();
  }
  const auto waits = [&](const MemberPointer& other) {
    return other.get() != &member && other->state != EngineState::kLoaded && is_wanted(*other, now);
  };
  return std::ranges::none_of(members_, waits) && (kept == 0 || kept + member.model.bytes <= options_.memory);
}

// False: the engine is not ready.
bool Fleet::take_place(FleetMember& member, uint64_t scope) {
  if (member.state != EngineState::kLoaded) return false;
  member.wanted_at = {};  // others that wait will ask again
  ++member.users;
  ++member.requests;
  ++running_;
  ++running_by_scope_[scope];
  return true;
}

void Fleet::leave(FleetMember& member, uint64_t scope) {
  --member.users;
  --running_;
  if (--running_by_scope_[scope] == 0) running_by_scope_.erase(scope);
  member.used_at = Clock::now();
  plan();
}

std::optional<ApiError> Fleet::load(FleetMember& member) {
  const auto now = Clock::now();
  if (std::optional<ApiError> refused = refusal(member, now)) return refused;
  if (!is_wanted(member, now)) member.waits_since = now;
  member.is_asked = true;
  plan();
  return std::nullopt;
}

void Fleet::unload(FleetMember& member) {
  member.is_asked = false;
  if (member.state == EngineState::kLoaded) member.state = EngineState::kLeaving;
  if (member.state == EngineState::kLoading) end(member);
  plan();
}

// Starts what is wanted and fits, and lets go what is idle or has to make room.
void Fleet::plan() {
  if (is_closed_) return;
  const auto now = Clock::now();
  forget_gone();
  unload_idle(now);
  for (MemberPointer next = next_to_start(now); next != nullptr; next = next_to_start(now)) {
    if (!fits(*next)) {
      make_room(*next, now);
      break;  // the model that waits longest comes first
    }
    launch(next);
  }
  for (const MemberPointer& member : members_) {
    if (member->state == EngineState::kLeaving && member->users == 0) end(*member);
  }
}

// A request that waits for a model has a share of it.
void Fleet::forget_gone() {
  std::erase_if(members_, [&](const MemberPointer& member) {
    return member->is_gone && !is_running(*member) && member.use_count() == 1;
  });
}

// Lets engines without requests go: of models that are gone, with other options, or that nobody asked for.
void Fleet::unload_idle(Clock::time_point now) {
  for (const MemberPointer& member : members_) {
    if (member->state != EngineState::kLoaded || member->users > 0) continue;
    const bool is_old = options_.idle_unload > 0 && seconds(now - member->used_at) >= options_.idle_unload;
    const bool is_left = member->is_gone && !is_wanted(*member, now);
    const bool starts_again = member->is_outdated() && !member->is_gone;
    if (!is_left && !starts_again && (!is_old || member->model.is_pinned)) continue;
    if (starts_again && !is_wanted(*member, now)) member->waits_since = now;
    member->is_asked = member->is_asked || starts_again;
    member->state = EngineState::kLeaving;
  }
}

MemberPointer Fleet::next_to_start(Clock::time_point now) const {
  MemberPointer next;
  for (const MemberPointer& member : members_) {
    if (is_running(*member) || !is_wanted(*member, now) || now < member->may_start_at) continue;
    if (!fits_beside_pinned(*member)) continue;  // it would hold up all that wait behind it
    if (next == nullptr || member->waits_since < next->waits_since) next = member;
  }
  return next;
}

bool Fleet::is_running(const FleetMember& member) const {
  return member.state != EngineState::kUnloaded && member.state != EngineState::kFailed;
}

// A model that needs more than the memory runs by itself.
bool Fleet::fits(const FleetMember& member) const {
  const int64_t used = used_bytes();
  return used == 0 || used + member.model.bytes <= options_.memory;
}

bool Fleet::fits_beside_pinned(const FleetMember& member) const {
  int64_t pinned = 0;
  for (const MemberPointer& other : members_)
    pinned += other->model.is_pinned && other.get() != &member ? other->bytes() : 0;
  return pinned == 0 || pinned + member.model.bytes <= options_.memory;
}

void Fleet::make_room(const FleetMember& member, Clock::time_point now) {
  int64_t used = used_bytes();
  for (const MemberPointer& other : members_) {
    const bool goes = other->state == EngineState::kLeaving || other->state == EngineState::kStopping;
    used -= goes ? other->bytes() : 0;
  }
  while (used > 0 && used + member.model.bytes > options_.memory) {
    const MemberPointer next = victim(now);
    if (next == nullptr) return;
    used -= next->bytes();
    next->state = EngineState::kLeaving;
  }
}

// The idle engine that was used least recently, else the engine that was loaded first; null: all have to
// stay.
MemberPointer Fleet::victim(Clock::time_point now) const {
  MemberPointer found;
  const auto leaves_before = [](const FleetMember& a, const FleetMember& b) {
    if ((a.users == 0) != (b.users == 0)) return a.users == 0;
    return a.users == 0 ? a.used_at < b.used_at : a.ready_at < b.ready_at;
  };
  for (const MemberPointer& member : members_) {
    const bool may_leave =
        now - member->ready_at >= (member->users == 0 ? Clock::duration(kWelcome) : kLeastStay);
    if (member->state != EngineState::kLoaded || member->model.is_pinned || !may_leave) continue;
    if (found == nullptr || leaves_before(*member, *found)) found = member;
  }
  return found;
}

void Fleet::launch(const MemberPointer& pointer) {
  FleetMember& member = *pointer;
  std::vector<std::string> arguments = member.model.arguments;
  arguments.insert(arguments.end(), {"--host", "unix:" + member.socket});
  const int64_t start = ++member.starts;
  member.state = EngineState::kLoading;
  member.resident_bytes = 0;
  member.started_with = member.model.arguments;
  auto process = EngineProcess::start(io_->get_executor(), options_.program, arguments, options_.environment);
  if (!process.ok()) return on_end(member, process.error().message);
  member.process = std::move(process).value();
  log_event("engine_started", fmt::format("{}: process {}", member.model.name, member.process->pid()));
  asio::co_spawn(*io_, watch_process(pointer), log_if_failed);
  asio::co_spawn(*io_, wait_until_ready(pointer, start), log_if_failed);
}

void Fleet::end(FleetMember& member) {
  const auto patience =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.drain_timeout));
  member.state = EngineState::kStopping;
  member.kill_at = Clock::now() + patience + kKillGrace;
  member.process->terminate();
}

Fleet::Task<void> Fleet::watch_process(MemberPointer member) {
  const std::string ending = co_await member->process->wait();
  on_end(*member, ending);
  plan();
}

void Fleet::tell(std::string_view action, const FleetMember& member, const std::string& error) const {
  if (audit_ == nullptr) return;
  [[maybe_unused]] const Status written =  // the log of the server tells of lost lines
      audit_->add({.action = std::string(action), .subject = member.model.name, .error = error});
}

void Fleet::on_end(FleetMember& member, const std::string& ending) {
  const auto now = Clock::now();
  const bool was_loaded = member.state == EngineState::kLoaded || member.state == EngineState::kLeaving;
  member.process.reset();
  std::error_code ignored;
  std::filesystem::remove(member.socket, ignored);
  if (member.state == EngineState::kStopping) {
    member.state = EngineState::kUnloaded;
    member.failures_in_a_row = 0;
    log_event("engine_unloaded", member.model.name);
    tell("model_unloaded", member);
    return;
  }
  if (was_loaded && now - member.ready_at >= kGoodRun) member.failures_in_a_row = 0;
  // Somebody may have killed it; the second time the engine itself is the reason.
  const bool is_told = !was_loaded && (member.failures_in_a_row > 0 || !ending.starts_with("signal"));
  const int doublings = std::min(member.failures_in_a_row++, kMostDoublings);
  const Clock::duration pause = kFirstPause * (1 << doublings);
  ++member.failures;
  member.state = EngineState::kFailed;
  member.problem = is_told ? ending : "";
  if (is_told) member.wanted_at = {};  // those who wait are told
  member.is_asked = member.model.is_pinned;
  member.may_start_at = now + pause;
  log_event("engine_failed", fmt::format("{}: {}; it may start again after {:.1f} s", member.model.name,
                                         ending, seconds(pause)));
  tell("model_failed", member, ending);
}

Fleet::Task<void> Fleet::wait_until_ready(MemberPointer member, int64_t start) {
  while (member->starts == start && member->state == EngineState::kLoading) {
    const bool is_ready = co_await is_healthy(member);
    if (member->starts != start || member->state != EngineState::kLoading) co_return;
    if (is_ready) {
      member->state = EngineState::kLoaded;
      member->problem.clear();
      member->is_asked = false;
      if (std::exchange(member->must_reload, false)) member->process->reload();
      member->ready_at = member->used_at = Clock::now();
      tell("model_loaded", *member);
      co_return;
    }
    co_await sleep(kHealthInterval);
  }
}

Fleet::Task<bool> Fleet::is_healthy(MemberPointer member) {
  EngineConnection connection(io_->get_executor());
  const std::string request = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  const bool is_answered = co_await connection.ask(member->socket, request);
  co_return is_answered&& connection.status() == 200;
}

Fleet::Task<void> Fleet::sleep(Clock::duration time) {
  asio::steady_timer timer(*io_, time);
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

// An engine that is loading takes no signals yet.
void Fleet::reload() {
  for (const MemberPointer& member : members_) {
    const bool is_ready = member->state == EngineState::kLoaded || member->state == EngineState::kLeaving;
    if (is_ready) member->process->reload();
    member->must_reload = member->state == EngineState::kLoading;
  }
}

Fleet::Task<void> Fleet::watch() {
  while (!is_closed_) {
    plan();
    for (const MemberPointer& member : members_) {
      if (member->process == nullptr) continue;
      member->resident_bytes = resident_memory(member->process->pid());
      if (member->state == EngineState::kStopping && Clock::now() >= member->kill_at) member->process->kill();
    }
    co_await sleep(kTick);
  }
}

// The first signal lets an engine finish its requests, the second one breaks them off.
Fleet::Task<void> Fleet::stop() {
  is_closed_ = true;
  const auto kill_at = Clock::now() + kKillGrace;
  for (int signals = 0; used_bytes() > 0; ++signals) {
    for (const MemberPointer& member : members_) {
      if (member->process == nullptr) continue;
      member->state = EngineState::kStopping;
      if (signals < 2) member->process->terminate();
      if (Clock::now() >= kill_at) member->process->kill();
    }
    co_await sleep(kTick);
  }
}

}  // namespace outrider
