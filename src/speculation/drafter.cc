// SPDX-License-Identifier: Apache-2.0
#include "outrider/drafter.h"

namespace outrider {

void Drafter::begin(uint64_t /*sequence*/, std::span<const TokenId> /*prompt*/) {}

void Drafter::observe(uint64_t /*sequence*/, const TokenTree& /*tree*/, const Verdict& /*verdict*/) {}

void Drafter::end(uint64_t /*sequence*/) {}

}  // namespace outrider
