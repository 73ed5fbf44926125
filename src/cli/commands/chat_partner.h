// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "cli/chat_model.h"
#include "cli/timed_completion.h"
#include "config/settings.h"
#include "outrider/result.h"
#include "server/api/tool_calls/message_delta.h"

namespace outrider {

struct ChatQuestion {
  std::span<const std::pair<std::string, std::string>> messages;  // role, content
  bool is_private = false;  // a server may see neither the last message nor anything after it
  uint64_t index = 0;       // number of the answer among several to one message
};

struct PartnerAnswer {
  TimedCompletion timed;
  std::string content;  // without thinking
};

using AnswerSink = std::function<void(const MessageDelta&)>;

// The model that a chat talks to, here or on a server.
class ChatPartner {
 public:
  virtual ~ChatPartner() = default;

  // Error: it has no chat template that works.
  virtual Status check() const = 0;
  // A new conversation.
  virtual void begin() = 0;
  // Answers the last message until Ctrl-C, and calls `sink` with the answer as it comes.
  virtual Result<PartnerAnswer> answer(const ChatQuestion& question, const AnswerSink& sink) = 0;
  // Switches the thinking of later answers. Error: this partner has no such switch.
  virtual Status think(const ThinkingChoice& choice) = 0;
  // Figures of the last answer, in lines.
  virtual std::string statistics(const TimedCompletion& timed) const = 0;
};

// The partner that options name.
Result<std::unique_ptr<ChatPartner>> open_chat_partner(const Settings& settings);

}  // namespace outrider
