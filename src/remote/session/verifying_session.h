// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "outrider/result.h"
#include "outrider/token_tree.h"
#include "remote/protocol/messages.h"
#include "remote/session/state_queue.h"

namespace outrider {

// The server's side of a session, without sockets and engine: which tree is verified next, and what the
// client has to be told. The engine works on one tree at a time; trees that come meanwhile wait, because a
// client may send the tree after next before it knows the verdict. A waiting tree counts as far as the output
// since then is a path in it; it is void otherwise.
class VerifyingSession {
 public:
  // Trees that wait while one is verified.
  static constexpr size_t kMaxWaiting = 4;

  // `limits` answers the client's first message, and each of its resumptions; `missed` is filled in.
  VerifyingSession(const OpenMessage& opened, OpenedMessage limits);

  // A tree that came before is ignored. Error: the tree begins after the output, or too many wait.
  Status on_tree(TreeMessage message, double now_ms);
  // The tree that the engine has to verify now; nullopt: it is at work, there is none, or next_message() has
  // the outcome of the one before, so that every verdict is about one tree.
  std::optional<TokenTree> next_tree();
  // The engine has these states [tokens, OpenedMessage::state_size] of the tokens that follow the last
  // call's. They come before on_tokens() of the same step.
  void on_states(std::span<const float> rows) { states_.add(rows); }
  // The engine has committed these tokens, which end its work on the tree.
  void on_tokens(std::span<const TokenId> tokens, std::optional<FinishReason> finish, double now_ms);
  // A client that has so many output tokens and states goes on over a new connection: trees sent before are
  // void. Error: it has more than there are, or fewer than it confirmed.
  Status on_resume(uint32_t output_length, uint32_t state_tokens);

  // The next message to the client; nullopt: there is none yet. States come before the tokens that their step
  // committed, and before OpenedMessage where they are older. After a resumption the first one waits until
  // the engine is done with the tree of the connection before, so that every later verdict is about a tree of
  // the new one.
  std::optional<ServerMessage> next_message();

  bool is_finished() const { return finish_.has_value(); }

 private:
  std::vector<TokenId> unsent() const {
    return {output_.begin() + static_cast<std::ptrdiff_t>(sent_), output_.end()};
  }
  TokenId pending() const { return output_.empty() ? last_of_prompt_ : output_.back(); }

  struct Arrived {
    TreeMessage message;
    double at_ms = 0;
  };

  OpenedMessage limits_;
  StateQueue states_;
  TokenId last_of_prompt_;
  size_t prompt_length_;
  size_t opened_length_;  // of the output when the session began
  std::vector<TokenId> output_;
  size_t sent_;  // tokens of the output that the client has or was sent
  std::deque<Arrived> waiting_;
  uint64_t next_tree_ = 0;        // trees of lower numbers came before
  double verified_since_ms_ = 0;  // arrival of the tree that is verified, or was last
  double verified_ms_ = 0;        // from then on to its outcome
  bool is_verifying_ = false;
  bool is_greeted_ = false;  // the client of this connection has `limits`
  bool is_end_sent_ = false;
  std::optional<FinishReason> finish_;
};

}  // namespace outrider
