// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "cli/timed_completion.h"
#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// The model that a chat talks to, here or on a server.
class ChatPartner {
 public:
  using Messages = std::span<const std::pair<std::string, std::string>>;  // role, content

  virtual ~ChatPartner() = default;

  // Error: it has no chat template that works.
  virtual Status check() const = 0;
  // A new conversation.
  virtual void begin() = 0;
  // Answers the last message, and writes the answer to the output as it comes, until Ctrl-C. is_private: a
  // server may see neither that message nor anything after it in this conversation.
  virtual Result<TimedCompletion> answer(Messages messages, bool is_private) = 0;
  // Figures of the last answer, in lines.
  virtual std::string statistics(const TimedCompletion& timed) const = 0;
};

// The partner that options name.
Result<std::unique_ptr<ChatPartner>> open_chat_partner(const Settings& settings);

}  // namespace outrider
