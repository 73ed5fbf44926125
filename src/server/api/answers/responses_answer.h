// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/answers/message_answer.h"
#include "server/api/requests/responses_request.h"
#include "server/api/response_store.h"

namespace outrider {

struct CallItemForm {
  std::string_view id_prefix;
  std::string_view type;
};

// The answer of /v1/responses. Each part of the message is an item of its output.
class ResponsesAnswer final : public MessageAnswer {
 public:
  ResponsesAnswer(ResponsesSpec spec, const CallContext& context, std::vector<Request> requests);

  std::string error_events(const ApiError& error) override;

 protected:
  void begin(std::string& events) override;
  void open_part(size_t index, const MessagePart& part, std::string& events) override;
  void extend_part(size_t index, const MessagePart& part, std::string_view text,
                   std::string& events) override;
  void close_part(size_t index, const MessagePart& part, std::string& events) override;
  void end(std::string& events) override;
  void on_end() override;
  std::string whole_body() const override;

 private:
  // Append one event; `write_members` adds members after its type and number, and after its item.
  template <typename Function>
  void append_event(std::string& events, std::string_view type, const Function& write_members);
  template <typename Function>
  void append_part_event(std::string& events, std::string_view type, size_t index,
                         const Function& write_members);

  // The kind of a call's tool, and the form of its item.
  ResponseToolKind tool_kind(size_t index) const;
  const CallItemForm& item_form(size_t index) const;
  void write_call(JsonWriter& json, size_t index, const std::string& arguments) const;
  void close_call(size_t index, const MessagePart& part, std::string& events);
  void write_item(JsonWriter& json, size_t index, std::string_view status) const;
  void write_content(JsonWriter& json, MessagePart::Kind kind, std::string_view text) const;
  void write_usage_object(JsonWriter& json) const;
  void write_response(JsonWriter& json, std::string_view status) const;
  std::string response_id() const;
  std::string item_id(size_t index) const;
  ChatMessage said_message() const;

  std::vector<ChatMessage> conversation_;               // without the answer
  std::string input_;                                   // ResponsesSpec::input
  std::string echo_;                                    // ResponsesSpec::echo
  std::map<std::string, ResponseToolKind> tool_kinds_;  // ResponsesSpec::tool_kinds
  ResponseStore* store_;                                // null: the response is not kept
  uint64_t scope_;
  int64_t sequence_ = 0;  // number of the next event
};

}  // namespace outrider
