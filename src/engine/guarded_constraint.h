// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "outrider/token_constraint.h"

namespace outrider {

// A request's constraint, which may be user code. After it throws, it allows no further token; but
// std::bad_alloc goes on to the caller.
class GuardedConstraint final : public TokenConstraint {
 public:
  explicit GuardedConstraint(std::shared_ptr<TokenConstraint> constraint)
      : constraint_(std::move(constraint)) {}

  State start() override;
  State advance(State state, TokenId token) override;
  std::span<const uint64_t> allowed(State state) override;
  bool is_complete(State state) override;

 private:
  template <typename Answer, typename Call>
  Answer guarded(Answer if_it_throws, Call&& call);
  void report(const char* what);

  std::shared_ptr<TokenConstraint> constraint_;
  bool is_reported_ = false;
};

}  // namespace outrider
