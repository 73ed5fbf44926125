// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <cstdint>
#include <utility>

#include "server/fleet/fleet.h"

namespace outrider {

// A place at an engine, which Fleet::enter() has given.
class FleetPlace {
 public:
  FleetPlace(Fleet* fleet, MemberPointer member, uint64_t scope)
      : fleet_(fleet), member_(std::move(member)), scope_(scope) {}
  ~FleetPlace() { fleet_->leave(*member_, scope_); }
  FleetPlace(const FleetPlace&) = delete;
  FleetPlace& operator=(const FleetPlace&) = delete;
  const FleetMember& member() const { return *member_; }

 private:
  Fleet* fleet_;
  MemberPointer member_;
  uint64_t scope_;
};

}  // namespace outrider
