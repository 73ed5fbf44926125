// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "remote/session/verifying_session.h"
#include "server/api/generation_call.h"

namespace outrider {

// The call of a client that drafts. Its answer are messages of the drafting protocol, which its connection
// takes from the session, instead of events.
class DraftingCall final : public GenerationCall {
 public:
  // `limits`: what the client is told about the server. Precondition: a prompt of one token or more.
  DraftingCall(const OpenMessage& opened, OpenedMessage limits, uint64_t cache_scope);

  VerifyingSession& session() { return session_; }

  void add(int choice, ChoiceDelta delta, std::string& events) override;
  std::string body() override { return {}; }

 private:
  VerifyingSession session_;
};

}  // namespace outrider
