// SPDX-License-Identifier: Apache-2.0
// A model of this machine as the server knows it, so that commands render chats, tell thinking from content
// and hold forms as requests to the server do.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "config/settings.h"
#include "outrider/engine.h"
#include "server/api/requests/chat_request.h"
#include "server/api/served_model.h"

namespace outrider {

// The inputs of a template that options give.
struct ChatInputs {
  std::optional<ChatTemplate> chat_template;  // in place of the model's
  TemplateValues values;
};
// Errors: a template or values that cannot be read.
Result<ChatInputs> read_chat_options(const ChatOptions& options);

// Sets the variables by which templates switch thinking on or off.
void set_thinking(TemplateValues& values, bool thinks);

class ChatModel {
 public:
  using Messages = std::span<const std::pair<std::string, std::string>>;  // role, content

  // The engine must outlive it.
  static Result<std::unique_ptr<ChatModel>> create(const Settings& settings, const Engine& engine);

  const ServedModel& served() const { return served_; }
  TemplateValues& values() { return served_.template_values; }

  // `request` with the messages as its prompt, and how its output is read. Errors: no template, or it refuses
  // the messages.
  Result<ChatSpec> spec_of(Messages messages, Request request) const;

 private:
  ChatModel() = default;

  std::optional<ChatTemplate> chat_template_;
  ServedModel served_;
};

// Holds the output of `spec` to the form that the options of `generate` ask for. Errors: several forms; a
// form that cannot be read or held.
Status set_form(const GenerateOptions& options, ChatSpec& spec);

}  // namespace outrider
