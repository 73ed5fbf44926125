// SPDX-License-Identifier: Apache-2.0
// The part that the answers of /v1/responses and /v1/messages share: one message, as a sequence of parts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/answers/answer_figures.h"
#include "server/api/answers/message_parser.h"
#include "server/api/generation_call.h"
#include "server/api/requests/chat_request.h"

namespace outrider {

// A part of a message. Parts follow one another in the order in which the model writes them.
struct MessagePart {
  enum class Kind : uint8_t { kReasoning, kText, kCall };
  Kind kind = Kind::kText;
  std::string name = {};  // of the called tool
  std::string text = {};  // of a call: its arguments
};

class MessageAnswer : public GenerationCall {
 public:
  MessageAnswer(ChatSpec spec, const CallContext& context, std::vector<Request> requests);

  void start(std::string& events) final;
  void add(int choice, ChoiceDelta delta, std::string& events) final;
  std::string body() final { return whole_body(); }

 protected:
  // Each of these appends events. `index` is the part's.
  virtual void begin(std::string& events) = 0;
  virtual void open_part(size_t index, const MessagePart& part, std::string& events) = 0;
  virtual void extend_part(size_t index, const MessagePart& part, std::string_view text,
                           std::string& events) = 0;
  virtual void close_part(size_t index, const MessagePart& part, std::string& events) = 0;
  virtual void end(std::string& events) = 0;
  // The answer is complete; called once, before end().
  virtual void on_end() {}
  virtual std::string whole_body() const = 0;

  const ChatSpec& spec() const { return spec_; }
  const std::vector<MessagePart>& parts() const { return parts_; }
  const ChoiceFigures& figures() const { return figures_; }
  int64_t reasoning_tokens() const { return reasoning_tokens_; }
  const std::optional<Completion>& completion() const { return completion_; }
  bool has_calls() const { return parser_.has_calls(); }
  // An id for part `index`, different for every answer: `prefix` and letters and digits.
  std::string part_id(std::string_view prefix, size_t index) const;
  // The id of a call: nine letters and digits, the only kind that Mistral's templates accept.
  std::string call_id(size_t index) const;
  const std::string& id() const { return id_; }
  int64_t created() const { return created_; }

 private:
  void add_text(MessagePart::Kind kind, std::string_view text, std::string& events);
  void add_call(const MessageDelta::Call& call, std::string& events);
  void open(MessagePart part, std::string& events);
  void extend(std::string_view text, std::string& events);
  void close_last(std::string& events);

  ChatSpec spec_;
  std::string id_;
  int64_t created_;
  MessageParser parser_;
  ChoiceFigures figures_;
  int64_t reasoning_tokens_ = 0;
  std::vector<MessagePart> parts_;
  std::optional<Completion> completion_;
};

// Appends "event: NAME\ndata: ", which the event's object follows.
JsonWriter begin_event(std::string& events, std::string_view name);
// Ends the event and its object.
void end_event(std::string& events, JsonWriter& json);

}  // namespace outrider
