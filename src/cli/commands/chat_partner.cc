// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/chat_partner.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/interrupt_guard.h"
#include "cli/commands/remote_text.h"
#include "cli/reports/draft_view.h"
#include "cli/terminal.h"
#include "open/parts.h"

namespace outrider {
namespace {

using Message = std::pair<std::string, std::string>;

std::vector<Message> greeting() { return {{"user", "hello"}}; }

class LocalPartner final : public ChatPartner {
 public:
  LocalPartner(const Settings& settings, std::unique_ptr<Engine> engine)
      : settings_(settings), engine_(std::move(engine)) {}

  Status check() const override {
    const auto text = engine_->apply_chat_template(greeting());
    return text.ok() ? Status() : Status(text.error());
  }
  void begin() override {}
  Result<TimedCompletion> answer(Messages messages, bool is_private) override;
  std::string statistics(const TimedCompletion& timed) const override {
    return statistics_line(timed.completion, timed.tokens_per_second()) + "\n";
  }

 private:
  const Settings& settings_;
  std::unique_ptr<Engine> engine_;
};

// No message leaves this machine, private or not.
Result<TimedCompletion> LocalPartner::answer(Messages messages, bool /*is_private*/) {
  OUTRIDER_TRY(const std::string prompt, engine_->apply_chat_template(messages));
  Request request = settings_.request;
  request.prompt = engine_->tokenize(prompt, false);  // the template writes its own special tokens
  const int64_t context = engine_->info().context;
  if (static_cast<int64_t>(request.prompt.size()) >= context) {
    return resource_error(
        fmt::format("the conversation has {} tokens and the context holds {}; /reset starts a new one",
                    request.prompt.size(), context));
  }
  return generate_timed(*engine_, std::move(request), [this](RequestId id, const Progress& progress) {
    write_output(progress.text);
    std::fflush(stdout);
    if (InterruptGuard::interrupted() && progress.completion == nullptr) engine_->cancel(id);
  });
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
  Result<TimedCompletion> answer(Messages messages, bool is_private) override;
  std::string statistics(const TimedCompletion& timed) const override;

 private:
  Result<DividedChat> render(Messages messages, bool is_private) const;

  const Settings& settings_;
  DraftingParts parts_;
  RemoteDecoder decoder_;
  std::optional<std::string> safe_;  // the text before the first private message; nullopt: nothing is private
};

// The first private message settles the text before it, with which all later prompts begin.
Result<DividedChat> RemotePartner::render(Messages messages, bool is_private) const {
  if (is_private && !safe_) {
    std::vector<Message> chat(messages.begin(), messages.end());
    const std::string hidden = std::exchange(chat.back().second, "");
    return render_private_chat(parts_.chat, chat, hidden);
  }
  DividedChat chat;
  OUTRIDER_TRY(chat.text, render_plain_chat(parts_.chat, messages, true));
  chat.safe = safe_ ? safe_->size() : chat.text.size();
  if (!safe_ || chat.text.starts_with(*safe_)) return chat;
  return input_error(
      "expected a chat template that keeps what stands before a private message, found one that changes it; "
      "/reset starts a new conversation");
}

Result<TimedCompletion> RemotePartner::answer(Messages messages, bool is_private) {
  OUTRIDER_TRY(const DividedChat chat, render(messages, is_private));
  const std::string_view text = chat.text;
  DividedPrompt prompt = divided(parts_, text.substr(0, chat.safe), text.substr(chat.safe), false);
  prompt.is_private = is_private || safe_.has_value();
  OUTRIDER_TRY(TimedCompletion timed, write_remotely(settings_, decoder_, prompt));
  if (prompt.is_private) safe_ = text.substr(0, chat.safe);
  return timed;
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
    return std::unique_ptr<ChatPartner>(std::make_unique<LocalPartner>(settings, std::move(engine)));
  }
  OUTRIDER_TRY(const DraftingServer server, server_of(settings.remote));
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kPlain));
  OUTRIDER_TRY(DraftingParts parts, open_drafting(std::move(names)));
  return std::unique_ptr<ChatPartner>(std::make_unique<RemotePartner>(settings, std::move(parts), server));
}

}  // namespace outrider
