// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "outrider/result.h"
#include "remote/protocol/messages.h"

namespace outrider {

// The server's side of the states that a client drafts with: states that are to be sent, and states that were
// sent and may have been lost with the connection. It holds a row for each token that the client has not
// confirmed.
class StateQueue {
 public:
  // type: kNone: the client wants no states. size: numbers per token. The client has the states of the first
  // `known` tokens.
  StateQueue(StateType type, int64_t size, int64_t known)
      : type_(type), size_(size), first_(known), sent_(known) {}

  // States [tokens, size] of the tokens that follow the last call's.
  void add(std::span<const float> rows);
  // The next message; nullopt: all states were sent.
  std::optional<StatesMessage> next();
  // The client has the states of the first `known` tokens, so that no others are needed again.
  void confirm(int64_t known);
  // The client goes on over a new connection, with the states of the first `known` tokens. Error: there are
  // fewer, or states that follow are gone.
  Status resume(int64_t known);

 private:
  int64_t row_size() const;
  int64_t end() const;

  StateType type_;
  int64_t size_;
  int64_t first_;      // token of the first row
  int64_t sent_;       // tokens before this one were sent
  std::string bytes_;  // rows from first_ on
};

}  // namespace outrider
