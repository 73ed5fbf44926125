// SPDX-License-Identifier: Apache-2.0
// States of the target (StateTraits) as they cross the network, a row of numbers for each token.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"
#include "remote/protocol/messages.h"

namespace outrider {

// Bytes of a row of `size` numbers. Precondition here and below: type is not kNone.
int64_t state_row_bytes(StateType type, int64_t size);

// Appends rows [rows, size].
void append_state_rows(StateType type, std::span<const float> rows, int64_t size, std::string& bytes);

// Appends the rows of bytes from a peer. Error: they are no whole rows, or not finite; rows before that are
// appended.
Status read_state_rows(StateType type, std::string_view bytes, int64_t size, std::vector<float>& rows);

}  // namespace outrider
