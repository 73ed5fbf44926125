// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/api/answers/answer.h"
#include "server/api/answers/message_parser.h"
#include "server/api/requests/chat_request.h"
#include "server/api/tool_calls/custom_calls.h"

namespace outrider {

class ChatAnswer final : public Answer {
 public:
  ChatAnswer(ChatSpec spec, const CallContext& context, std::vector<Request> requests);

 protected:
  bool begin_choice(int choice, JsonWriter& json) override;
  bool add_choice(int choice, std::string_view text, const ChoiceDelta& delta, JsonWriter& json) override;
  void end_choice(int choice, JsonWriter& json) override;
  void whole_choice(int choice, JsonWriter& json) override;
  bool has_tool_calls(int choice) const override;

 private:
  struct Choice {
    MessageParser parser;
    MessageDelta message = {};  // of an answer that is not streamed
    std::string logprobs = {};  // items of logprobs.content, if not streamed
    CustomCalls custom;
  };

  void write_delta(JsonWriter& json, int choice, const MessageDelta& delta) const;
  // A call as it is listed: its object's members, and its end.
  struct ListedCall {
    const MessageDelta::Call& call;
    bool has_name = false;  // the name comes with the call's beginning
    bool is_custom = false;
  };
  void write_call(JsonWriter& json, int choice, const ListedCall& listed) const;
  void write_logprobs(JsonWriter& json, bool is_listed, const std::string& items) const;
  std::string call_id(int choice, int call) const;

  bool logprobs_;
  std::string id_;
  std::vector<Choice> choices_;
};

}  // namespace outrider
