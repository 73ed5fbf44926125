// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/api/answers/message_answer.h"

namespace outrider {

// The answer of /v1/messages. Each part of the message is a block of its content.
class MessagesAnswer final : public MessageAnswer {
 public:
  using MessageAnswer::MessageAnswer;

  std::string error_events(const ApiError& error) override;

 protected:
  void begin(std::string& events) override;
  void open_part(size_t index, const MessagePart& part, std::string& events) override;
  void extend_part(size_t index, const MessagePart& part, std::string_view text,
                   std::string& events) override;
  void close_part(size_t index, const MessagePart& part, std::string& events) override;
  void end(std::string& events) override;
  std::string whole_body() const override;

 private:
  void write_block(JsonWriter& json, size_t index, bool is_begun) const;
  void write_message(JsonWriter& json) const;
  void write_stop(JsonWriter& json) const;
  void write_usage_object(JsonWriter& json) const;
};

}  // namespace outrider
