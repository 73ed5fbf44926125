// SPDX-License-Identifier: Apache-2.0
// Whole conversations: a server's session with a client that sends anything, and a client's with a server
// that does.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "remote/protocol/codec.h"
#include "remote/session/drafting_session.h"
#include "remote/session/verifying_session.h"

namespace {

// The input is a list of messages, each after two bytes of its size.
std::vector<std::string_view> split(std::string_view bytes) {
  std::vector<std::string_view> messages;
  while (bytes.size() >= 2) {
    const size_t size = static_cast<uint8_t>(bytes[0]) | static_cast<size_t>(static_cast<uint8_t>(bytes[1]))
                                                             << 8;
    messages.push_back(bytes.substr(2, size));
    bytes.remove_prefix(std::min(bytes.size(), 2 + size));
  }
  return messages;
}

// Takes every tree, commits its first path and another token, and sends all that is to be sent.
void serve(outrider::VerifyingSession& session, int round) {
  if (const auto tree = session.next_tree()) {
    std::vector<outrider::TokenId> tokens;
    for (int node = 1; node < tree->size() && node <= 3 && tree->parent(node) == node - 1; ++node)
      tokens.push_back(tree->token(node));
    tokens.push_back(round);
    const std::vector<float> states(2 * tokens.size(), 0.5f);
    session.on_states(states);
    session.on_tokens(tokens, std::nullopt, round);
  }
  while (session.next_message()) {
  }
}

void meet_client(const std::vector<std::string_view>& messages) {
  const outrider::OpenMessage opened{.prompt = {1}, .states = outrider::StateType::kQ8};
  outrider::VerifyingSession session(opened, {.state_size = 2});
  int round = 0;
  for (const std::string_view bytes : messages) {
    auto message = outrider::decode_client_message(bytes);
    bool is_fine = message.ok();
    if (is_fine) {
      if (auto* tree = std::get_if<outrider::TreeMessage>(&*message)) {
        is_fine = session.on_tree(std::move(*tree), 0).ok();
      } else if (const auto* resume = std::get_if<outrider::ResumeMessage>(&*message)) {
        is_fine = session.on_resume(resume->output_length, resume->state_tokens).ok();
      }
    }
    if (!is_fine) return;  // the connection ends
    serve(session, ++round);
  }
}

void meet_server(const std::vector<std::string_view>& messages) {
  outrider::DraftingSession session({.prompt = {1}, .states = outrider::StateType::kF16},
                                    {.vocab_size = 1000, .state_size = 2});
  static_cast<void>(session.greeting());
  for (const std::string_view bytes : messages) {
    const auto message = outrider::decode_server_message(bytes);
    if (!message.ok()) return;
    const size_t known = session.output().size();
    if (!session.on_message(*message).ok()) return;
    if (session.output().size() < known) __builtin_trap();
    if (session.states().size() > size_t{session.limits().context} * session.limits().state_size)
      __builtin_trap();
    for (const outrider::TokenId token : session.output()) {
      if (token < 0 || token >= 1000) __builtin_trap();
    }
    if (!session.is_open() || session.finish()) continue;
    outrider::TokenTree tree(session.output().empty() ? 1 : session.output().back());
    tree.add(tree.add(0, 2), 3);
    if (session.awaited() < 2) static_cast<void>(session.send(tree));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto messages = split({reinterpret_cast<const char*>(data), size});
  meet_client(messages);
  meet_server(messages);
  return 0;
}
