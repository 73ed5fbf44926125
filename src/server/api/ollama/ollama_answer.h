// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api/answers/answer_figures.h"
#include "server/api/answers/message_parser.h"
#include "server/api/generation_call.h"
#include "server/api/ollama/ollama_request.h"

namespace outrider {

// The answer of Ollama's /api/chat and /api/generate: one object, or a line for each piece and one for the
// end.
class OllamaAnswer final : public GenerationCall {
 public:
  OllamaAnswer(OllamaSpec spec, const CallContext& context, std::vector<Request> requests);

  void add(int choice, ChoiceDelta delta, std::string& events) override;
  std::string error_events(const ApiError& error) override;
  std::string body() override;
  std::string_view content_type() const override { return "application/x-ndjson"; }
  std::string_view ping() const override { return {}; }  // a line must be an object

 private:
  JsonWriter begin_object(std::string& out) const;
  void take(MessageDelta output, std::string& events);
  void take_calls(std::string& events);
  void write_line(std::string& events, const MessageDelta& message) const;
  void write_message(JsonWriter& json, const MessageDelta& message) const;
  void write_end(JsonWriter& json) const;

  OllamaSpec spec_;
  std::string created_at_;
  MessageParser parser_;
  MessageDelta message_;          // its calls, and, if it is not streamed, all of it
  std::vector<TokenId> context_;  // of the conversation, if it is returned
  ChoiceFigures figures_;
  std::optional<Completion> completion_;
};

}  // namespace outrider
