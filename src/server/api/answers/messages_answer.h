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
  void append_block(std::string& out, size_t index, bool is_begun) const;
  void append_message(std::string& out) const;
  void append_stop(std::string& out) const;
  void append_usage_object(std::string& out) const;
};

}  // namespace outrider
