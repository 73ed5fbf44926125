// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "server/calls/drafting_call.h"
#include "server/calls/live_calls.h"

namespace outrider {

// A session and the connection that serves it, of which there may be several, one after the other.
struct DraftingEntry {
  std::shared_ptr<LiveCall> call = {};
  DraftingCall* generation = nullptr;  // of `call`
  std::function<void()> leave = {};    // ends the connection that serves it; empty: none does
  double left_ms = 0;                  // when the last connection ended
  uint32_t connection = 0;             // the client's number of the last one

  bool is_served() const { return leave != nullptr; }
};

// The sessions of all clients that draft. Only the I/O thread uses them.
class DraftingSessions {
 public:
  // Clients of another scope cannot reach a session, even if they know its id.
  using Key = std::pair<uint64_t, SessionId>;

  // Null: there is none.
  std::shared_ptr<DraftingEntry> find(const Key& key) const;
  void add(const Key& key, std::shared_ptr<DraftingEntry> entry) { entries_[key] = std::move(entry); }
  // Forgets the session and cancels its call, if that runs.
  void end(const Key& key, LiveCalls& calls, EngineLoop& engine);
  // Ends the sessions with a last connection that ended before `left_before_ms`.
  void expire(double left_before_ms, LiveCalls& calls, EngineLoop& engine);

  size_t size() const { return entries_.size(); }
  size_t size_of(uint64_t scope) const;

 private:
  std::map<Key, std::shared_ptr<DraftingEntry>> entries_;
};

}  // namespace outrider
