// SPDX-License-Identifier: Apache-2.0
#include "engine/guarded_constraint.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>

#include "base/log.h"

namespace outrider {

template <typename Answer, typename Call>
Answer GuardedConstraint::guarded(Answer if_it_throws, Call&& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {  // not a fault of the constraint: the step fails
    throw;
  } catch (const std::exception& error) {
    report(error.what());
  } catch (...) {
    report("an unknown exception");
  }
  return if_it_throws;
}

void GuardedConstraint::report(const char* what) {
  if (std::exchange(is_reported_, true)) return;
  log_warning(std::string("a request's constraint threw, its output ends there: ") + what);
}

TokenConstraint::State GuardedConstraint::start() {
  return guarded(kDead, [&] { return std::max(kDead, constraint_->start()); });
}

TokenConstraint::State GuardedConstraint::advance(State state, TokenId token) {
  if (state == kDead) return kDead;
  return guarded(kDead, [&] { return std::max(kDead, constraint_->advance(state, token)); });
}

std::span<const uint64_t> GuardedConstraint::allowed(State state) {
  if (state == kDead) return {};
  return guarded(std::span<const uint64_t>(), [&] { return constraint_->allowed(state); });
}

bool GuardedConstraint::is_complete(State state) {
  return state == kDead || guarded(true, [&] { return constraint_->is_complete(state); });
}

}  // namespace outrider
