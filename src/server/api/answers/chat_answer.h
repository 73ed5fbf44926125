// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/api/answers/answer.h"
#include "server/api/answers/message_parser.h"
#include "server/api/requests/chat_request.h"

namespace outrider {

class ChatAnswer final : public Answer {
 public:
  ChatAnswer(ChatSpec spec, const CallContext& context, std::vector<Request> requests);

 protected:
  bool begin_choice(int choice, std::string& out) override;
  bool add_choice(int choice, std::string_view text, const ChoiceDelta& delta, std::string& out) override;
  void end_choice(int choice, std::string& out) override;
  void whole_choice(int choice, std::string& out) override;
  bool has_tool_calls(int choice) const override;

 private:
  struct Choice {
    MessageParser parser;
    MessageDelta message = {};  // of an answer that is not streamed
    std::string logprobs = {};  // items of logprobs.content, if not streamed
  };

  void append_delta(std::string& out, int choice, const MessageDelta& delta) const;
  void append_logprobs(std::string& out, const ChoiceDelta& delta) const;
  std::string call_id(int choice, int call) const;

  bool logprobs_;
  std::string id_;
  std::vector<Choice> choices_;
};

}  // namespace outrider
