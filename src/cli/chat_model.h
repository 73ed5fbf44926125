// SPDX-License-Identifier: Apache-2.0
// A model of this machine as the server knows it, so that commands render chats, tell thinking from content
// and hold forms as requests to the server do.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "config/settings.h"
#include "outrider/engine.h"
#include "server/api/requests/chat_request.h"
#include "server/api/served_model.h"

namespace outrider {

// How a model that can think first does so.
struct ThinkingChoice {
  bool thinks = true;
  std::optional<int64_t> budget = {};  // tokens; unset: no bound
};
// "on", "off" or a number of tokens; 0 is "off" and -1 is "on", as in requests. Error: `where` had something
// else.
Result<ThinkingChoice> parse_thinking(std::string_view where, std::string_view how);

// The inputs of a chat that options give.
struct ChatInputs {
  std::optional<ChatTemplate> chat_template;  // in place of the model's
  TemplateValues values;
  std::optional<int64_t> thinking_budget;
};
// Errors: a template or values that cannot be read.
Result<ChatInputs> read_chat_options(const ChatOptions& options);

class ChatModel {
 public:
  using Messages = std::span<const std::pair<std::string, std::string>>;  // role, content

  // The engine must outlive it.
  static Result<std::unique_ptr<ChatModel>> create(const Settings& settings, const Engine& engine);

  const ServedModel& served() const { return served_; }
  void set_thinking(const ThinkingChoice& choice);

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
