// SPDX-License-Identifier: Apache-2.0
#include "tests/network/last_token.h"

#include <variant>

#include "remote/protocol/codec.h"

namespace outrider {

std::function<bool(bool is_to_target, const std::string& message)> up_to_token(uint32_t tokens) {
  return [tokens](bool is_to_target, const std::string& bytes) {
    if (is_to_target) return true;
    const auto message = decode_server_message(bytes);
    const auto* verdict = message.ok() ? std::get_if<VerdictMessage>(&*message) : nullptr;
    return verdict == nullptr || verdict->first + verdict->tokens.size() < tokens;
  };
}

}  // namespace outrider
