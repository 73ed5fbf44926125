// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "outrider/result.h"
#include "remote/protocol/messages.h"

namespace outrider {

// One message as the payload of one WebSocket message: a byte for its kind, then its fields in their order.
std::string encode(const ClientMessage& message);
std::string encode(const ServerMessage& message);

// Bytes from a peer, which may be anything. Error: they are no message, with the kind of message that they
// begin.
Result<ClientMessage> decode_client_message(std::string_view bytes);
Result<ServerMessage> decode_server_message(std::string_view bytes);

}  // namespace outrider
