// SPDX-License-Identifier: Apache-2.0
// Messages of the drafting protocol, from clients and from servers, and the sessions that take them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "remote/protocol/codec.h"
#include "remote/session/drafting_session.h"
#include "remote/session/verifying_session.h"

namespace {

void take(const outrider::ClientMessage& message) {
  using outrider::decode_client_message;
  if (encode(*decode_client_message(encode(message))) != encode(message)) __builtin_trap();
  const outrider::OpenMessage opened{.prompt = {1}, .output = {2, 3}, .states = outrider::StateType::kQ8};
  outrider::VerifyingSession session(opened, {.state_size = 2});
  const float states[] = {0.5f, -1, 2, 3};
  session.on_states(states);
  if (const auto* tree = std::get_if<outrider::TreeMessage>(&message)) {
    if (session.on_tree(*tree, 0).ok()) static_cast<void>(session.next_tree());
  } else if (const auto* resume = std::get_if<outrider::ResumeMessage>(&message)) {
    static_cast<void>(session.on_resume(resume->output_length, resume->state_tokens));
  }
  static_cast<void>(session.next_message());
}

void take(const outrider::ServerMessage& message) {
  using outrider::decode_server_message;
  if (encode(*decode_server_message(encode(message))) != encode(message)) __builtin_trap();
  outrider::DraftingSession session({.prompt = {1}, .states = outrider::StateType::kF16},
                                    {.vocab_size = 64, .state_size = 3});
  static_cast<void>(session.on_message(outrider::OpenedMessage{.context = 64, .state_size = 3}));
  outrider::TokenTree tree(1);
  tree.add(tree.add(0, 2), 3);
  static_cast<void>(session.send(tree));
  static_cast<void>(session.on_message(message));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto message = outrider::decode_client_message(bytes); message.ok()) take(*message);
  if (const auto message = outrider::decode_server_message(bytes); message.ok()) take(*message);
  return 0;
}
