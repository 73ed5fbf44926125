// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/chat_partner.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/interrupt_guard.h"
#include "cli/chat_model.h"
#include "cli/commands/remote_text.h"
#include "cli/reports/draft_view.h"
#include "cli/terminal.h"
#include "open/parts.h"
#include "server/api/answers/message_parser.h"

namespace outrider {
namespace {

using Message = std::pair<std::string, std::string>;

std::vector<Message> greeting() { return {{"user", "hello"}}; }

class LocalPartner final : public ChatPartner {
 public:
  LocalPartner(const Settings& settings, std::unique_ptr<Engine> engine, std::unique_ptr<ChatModel> model)
      : settings_(settings), engine_(std::move(engine)), model_(std::move(model)) {}

  Status check() const override {
    const auto spec = model_->spec_of(greeting(), {});
    return spec.ok() ? Status() : Status(spec.error());
  }
  void begin() override {}
  Result<PartnerAnswer> answer(const ChatQuestion& question, const AnswerSink& sink) override;
  Status think(const ThinkingChoice& choice) override {
    model_->set_thinking(choice);
    return {};
  }
  std::string statistics(const TimedCompletion& timed) const override {
    return statistics_line(timed.completion, timed.tokens_per_second()) + "\n";
  }

 private:
  const Settings& settings_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ChatModel> model_;  // uses the engine
};

// No message leaves this machine, private or not.
Result<PartnerAnswer> LocalPartner::answer(const ChatQuestion& question, const AnswerSink& sink) {
  OUTRIDER_TRY(ChatSpec spec, model_->spec_of(question.messages, settings_.request));
  spec.request.sample_index = question.index;
  const int64_t context = engine_->info().context;
  if (static_cast<int64_t>(spec.request.prompt.size()) >= context) {
    return resource_error(
        fmt::format("the conversation has {} tokens and the context holds {}; /reset starts a new one",
                    spec.request.prompt.size(), context));
  }
  PartnerAnswer answer;
  MessageParser parser(spec);
  const auto show = [&](RequestId id, const Progress& progress) {
    const MessageDelta delta = parser.push(progress.text, progress.tokens, progress.completion != nullptr);
    answer.content += delta.content;
    sink(delta);
    if (InterruptGuard::interrupted() && progress.completion == nullptr) engine_->cancel(id);
  };
  OUTRIDER_TRY(answer.timed, generate_timed(*engine_, std::move(spec.request), show));
  return answer;
}

// Drafts here, and a server decodes.
class RemotePartner final : public ChatPartner {
 public:
  RemotePartner(const Settings& settings, DraftingParts parts, const DraftingServer& server)
      : settings_(settings), parts_(std::move(parts)), decoder_(&parts_, server) {
    decoder_.set_state_type(state_type_of(settings.remote));
    decoder_.stop_when(&InterruptGuard::interrupted);
  }

  Status check() const override {
    const auto text = render_plain_chat(parts_.chat, greeting(), true);
    return text.ok() ? Status() : Status(text.error());
  }
  void begin() override { safe_.reset(); }
  Result<PartnerAnswer> answer(const ChatQuestion& question, const AnswerSink& sink) override;
  Status think(const ThinkingChoice&) override {
    return usage_error("expected a model on this machine, found one on a server");
  }
  std::string statistics(const TimedCompletion& timed) const override;

 private:
  Result<DividedChat> render(const ChatQuestion& question) const;

  const Settings& settings_;
  DraftingParts parts_;
  RemoteDecoder decoder_;
  std::optional<std::string> safe_;  // the text before the first private message; nullopt: nothing is private
};

// The first private message settles the text before it, with which all later prompts begin.
Result<DividedChat> RemotePartner::render(const ChatQuestion& question) const {
  if (question.is_private && !safe_) {
    std::vector<Message> chat(question.messages.begin(), question.messages.end());
    const std::string hidden = std::exchange(chat.back().second, "");
    return render_private_chat(parts_.chat, chat, hidden);
  }
  DividedChat chat;
  OUTRIDER_TRY(chat.text, render_plain_chat(parts_.chat, question.messages, true));
  chat.safe = safe_ ? safe_->size() : chat.text.size();
  if (!safe_ || chat.text.starts_with(*safe_)) return chat;
  return input_error(
      "expected a chat template that keeps what stands before a private message, found one that changes it; "
      "/reset starts a new conversation");
}

// The text is written while it comes, as `generate --server` writes it.
Result<PartnerAnswer> RemotePartner::answer(const ChatQuestion& question, const AnswerSink&) {
  OUTRIDER_TRY(const DividedChat chat, render(question));
  const std::string_view text = chat.text;
  DividedPrompt prompt = divided(parts_, text.substr(0, chat.safe), text.substr(chat.safe), false);
  prompt.is_private = question.is_private || safe_.has_value();
  PartnerAnswer answer;
  OUTRIDER_TRY(answer.timed, write_remotely(settings_, decoder_, prompt));
  answer.content = answer.timed.completion.text;
  if (prompt.is_private) safe_ = text.substr(0, chat.safe);
  return answer;
}

std::string RemotePartner::statistics(const TimedCompletion& timed) const {
  const RemoteCounts& counts = decoder_.counts();
  return fmt::format(
      "{}\n{}: {} verdicts, {} bytes sent, {} received, {} connections broke, {} tokens offline\n",
      statistics_line(timed.completion, timed.tokens_per_second()), settings_.remote.url, counts.verdicts,
      counts.bytes_sent, counts.bytes_received, counts.reconnects, counts.lone);
}

}  // namespace

Result<std::unique_ptr<ChatPartner>> open_chat_partner(const Settings& settings) {
  if (settings.remote.url.empty()) {
    OUTRIDER_TRY(Names names, names_of(settings, Unasked::kAuto));
    OUTRIDER_TRY(std::unique_ptr<Engine> engine, open_engine(std::move(names)));
    OUTRIDER_TRY(std::unique_ptr<ChatModel> model, ChatModel::create(settings, *engine));
    return std::unique_ptr<ChatPartner>(
        std::make_unique<LocalPartner>(settings, std::move(engine), std::move(model)));
  }
  OUTRIDER_TRY(const DraftingServer server, server_of(settings.remote));
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kPlain));
  OUTRIDER_TRY(DraftingParts parts, open_drafting(std::move(names)));
  return std::unique_ptr<ChatPartner>(std::make_unique<RemotePartner>(settings, std::move(parts), server));
}

}  // namespace outrider
