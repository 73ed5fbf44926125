// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "outrider/token_constraint.h"

namespace outrider {

// A view of a constraint for one of several threads, which all use it under one mutex.
class SharedConstraint final : public TokenConstraint {
 public:
  SharedConstraint(TokenConstraint* constraint, std::mutex* mutex) : constraint_(constraint), mutex_(mutex) {}

  State start() override {
    const std::scoped_lock lock(*mutex_);
    return constraint_->start();
  }
  State advance(State state, TokenId token) override {
    const std::scoped_lock lock(*mutex_);
    return constraint_->advance(state, token);
  }
  std::span<const uint64_t> allowed(State state) override {
    const std::scoped_lock lock(*mutex_);
    const std::span<const uint64_t> allowed = constraint_->allowed(state);
    allowed_.assign(allowed.begin(), allowed.end());
    return allowed_;
  }
  bool is_complete(State state) override {
    const std::scoped_lock lock(*mutex_);
    return constraint_->is_complete(state);
  }

 private:
  TokenConstraint* constraint_;
  std::mutex* mutex_;
  std::vector<uint64_t> allowed_;
};

}  // namespace outrider
