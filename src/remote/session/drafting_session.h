// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outrider/result.h"
#include "outrider/token_tree.h"
#include "remote/protocol/messages.h"

namespace outrider {

// The client's side of a session, without sockets and drafter: what it knows of the output, and what it has
// to tell the server, whatever the network does to their messages.
class DraftingSession {
 public:
  // Limits that everything that a server sends must keep.
  struct Bounds {
    int64_t vocab_size = 0;  // tokens are smaller
    int64_t state_size = 0;  // numbers of a token's states, as the drafter reads them; 0: it reads none
  };
  DraftingSession(OpenMessage open, const Bounds& bounds) : open_(std::move(open)), bounds_(bounds) {}

  // The first message over a new connection: that opens the session, or that resumes it where the server is
  // expected to know it.
  ClientMessage greeting();
  // The connection broke: the trees on their way are lost.
  void on_disconnect();

  // The message for a tree; its root is the last token of the output so far. A tree may be sent before the
  // outcome of the one before is known: it counts if its first nodes are that outcome.
  TreeMessage send(const TokenTree& tree);

  // The outcome of a tree.
  struct Answer {
    TokenTree tree;  // as the server verified it, unless it cut nodes that are not on the path
    Verdict verdict;
    double server_ms = 0;
  };
  // A message that brings no outcome changes only output() and finish(); one that comes twice changes
  // nothing. After one by which the server forgets the session, but may take it later, is_open() is false,
  // and greeting() opens the session again. Error: the server refuses the session, or contradicts itself.
  Result<std::optional<Answer>> on_message(const ServerMessage& message);

  // The server has answered over this connection.
  bool is_open() const { return is_open_; }
  const OpenedMessage& limits() const { return limits_; }
  // Trees with outcomes that will come, whatever is sent next, unless the outcome of one leaves the next.
  size_t awaited() const { return sent_.size(); }
  // The first of them, after the output so far. Precondition: there is one.
  TokenTree first_awaited() const;
  const std::vector<TokenId>& output() const { return open_.output; }
  std::optional<FinishReason> finish() const { return finish_; }
  // States that came and were not dropped, [tokens, limits().state_size]. They begin with token first_state()
  // of prompt and output, and may belong to tokens that the output does not have yet.
  std::span<const float> states() const { return states_; }
  int64_t first_state() const { return first_state_; }
  void drop_states(int64_t tokens);
  // The client goes on after another output, which has the first `same` tokens in common with the output so
  // far: it opens a session of this id. Precondition: states of later tokens were not dropped.
  void restart(const SessionId& id, std::vector<TokenId> output, size_t same);
  // Why the server forgot the session; empty: it did not.
  const std::string& refusal() const { return refusal_; }

 private:
  Result<std::optional<Answer>> take(const OpenedMessage& message);
  Result<std::optional<Answer>> take(const VerdictMessage& message);
  Result<std::optional<Answer>> take(const ErrorMessage& message);
  Result<std::optional<Answer>> take(const StatesMessage& message);
  Status check(std::span<const TokenId> tokens) const;
  int64_t max_states() const;
  bool has(const VerdictMessage& message) const;
  void append(std::span<const TokenId> tokens);

  OpenMessage open_;  // with the output and the number of states so far
  Bounds bounds_;
  OpenedMessage limits_;
  bool is_known_ = false;  // by the server, as far as the client has heard
  bool is_open_ = false;
  bool is_forgotten_ = false;     // the server said so over this connection, and says nothing after that
  uint32_t trees_ = 0;            // sent so far
  std::deque<TreeMessage> sent_;  // trees without an outcome, of which the output so far is a path
  std::vector<float> states_;
  int64_t first_state_ = 0;
  std::optional<FinishReason> finish_;
  std::string refusal_;
};

}  // namespace outrider
