// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/interrupt_guard.h"
#include "cli/answer_view.h"
#include "cli/commands/chat_partner.h"
#include "cli/commands/commands.h"
#include "cli/conversation.h"
#include "cli/line_reader.h"
#include "cli/terminal.h"
#include "config/environment.h"
#include "platform/durable_file.h"

namespace outrider {
namespace {

constexpr std::string_view kHelp =
    "/reset         start a new conversation\n"
    "/regen         answer the last message again, in other words if the temperature allows\n"
    "/system TEXT   set the system message; without TEXT none\n"
    "/think HOW     let the model think before it answers: on, off, or so many tokens\n"
    "/save FILE     write the conversation as JSON; /load FILE reads it\n"
    "/private TEXT  say TEXT; the rest of the conversation is not shown to --server\n"
    "/stats         figures of the last answer\n"
    "/exit          leave (or Ctrl-D)\n"
    "A text between two lines of \"\"\" may have several lines, and a pasted text keeps its own. A line that "
    "begins\n"
    "with / and is no command is said. Ctrl-C ends an answer, or clears a line; Ctrl-R searches in earlier "
    "lines.\n";

// The file of the lines that were said; empty where it cannot be kept.
std::filesystem::path history_file() {
  const std::filesystem::path folder = user_state_directory();
  if (folder.empty() || !make_directories(folder).ok()) return {};
  return folder / "chat_history";
}

class Chat {
 public:
  Chat(ChatPartner& partner, const Settings& settings)
      : partner_(partner), is_interactive_(input_is_terminal()), most_tokens_(settings.request.max_tokens) {
    conversation_.set_system(settings.system_message.value_or(""));
    partner_.begin();
  }

  Status run() {
    const std::unique_ptr<LineReader> reader =
        LineReader::open(is_interactive_ ? history_file() : std::filesystem::path());
    if (is_interactive_) write_error_text("/help lists the commands\n");
    // Ctrl-C between a line and its answer ends the answer, which makes no other guard.
    std::optional<InterruptGuard> guard;
    if (is_interactive_) guard.emplace(std::initializer_list<int>{SIGINT});
    std::string text;
    while (!is_over_) {
      const LineEnd end = read_message(*reader, text);
      if (end == LineEnd::kEndOfInput) return {};
      if (end == LineEnd::kInterrupted || text.empty()) continue;
      if (!text.starts_with("/private ")) reader->remember(text);
      const Status done = take(text);
      if (done.ok()) continue;
      if (!is_interactive_) return done;
      write_error_line(done.error().message);
    }
    return {};
  }

 private:
  // A command, or what is said to the model.
  Status take(const std::string& text) {
    const size_t space = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = std::string_view(text).substr(0, space);
    const std::string rest = space < text.size() ? text.substr(space + 1) : "";
    for (const Command& command : commands()) {
      if (command.name == word && (command.takes_text || rest.empty())) return (this->*command.run)(rest);
    }
    return say(text, /*is_private=*/false);
  }

  Status say(const std::string& text, bool is_private) {
    conversation_.add("user", text);
    index_ = 0;
    const Status answered = answer(is_private);
    if (!answered.ok()) conversation_.drop_last();
    return answered;
  }

  Status answer(bool is_private) {
    std::optional<InterruptGuard> guard;
    if (!is_interactive_) guard.emplace(std::initializer_list<int>{SIGINT});
    AnswerView view;
    auto answer =
        partner_.answer({.messages = conversation_.messages(), .is_private = is_private, .index = index_},
                        [&](const MessageDelta& delta) { view.show(delta); });
    view.finish();
    if (!answer.ok()) return answer.error();
    write_output("\n");
    std::fflush(stdout);
    conversation_.add("assistant", answer->content);
    last_ = std::move(answer->timed);
    if (is_interactive_) {
      write_error_text(
          ending_text(last_->completion, most_tokens_, "/reset starts a new conversation, --ctx holds more"));
    }
    return {};
  }

  Status reset(const std::string&) {
    conversation_.clear();
    last_.reset();
    partner_.begin();
    return {};
  }

  Status answer_again(const std::string&) {
    if (!conversation_.ends_with("assistant")) return input_error("nothing was answered yet");
    const std::string before = conversation_.messages().back().second;
    conversation_.drop_last();
    ++index_;
    const Status answered = answer(/*is_private=*/false);
    if (!answered.ok()) conversation_.add("assistant", before);
    return answered;
  }

  Status set_system(const std::string& text) {
    conversation_.set_system(text);
    return {};
  }

  Status think(const std::string& how) {
    OUTRIDER_TRY(const ThinkingChoice choice, parse_thinking("/think", how));
    return partner_.think(choice);
  }

  Status save(const std::string& file) {
    OUTRIDER_RETURN_IF_ERROR(conversation_.save(file));
    write_error_text(fmt::format("wrote {} messages\n", conversation_.messages().size()));
    return {};
  }

  Status load(const std::string& file) {
    OUTRIDER_RETURN_IF_ERROR(conversation_.load(file));
    partner_.begin();
    write_error_text(fmt::format("read {} messages\n", conversation_.messages().size()));
    return {};
  }

  Status say_privately(const std::string& text) { return say(text, /*is_private=*/true); }

  Status show_statistics(const std::string&) {
    write_error_text(last_ ? partner_.statistics(*last_) : "nothing was answered yet\n");
    return {};
  }

  Status show_help(const std::string&) {
    write_error_text(kHelp);
    return {};
  }

  Status leave(const std::string&) {
    is_over_ = true;
    return {};
  }

  struct Command {
    std::string_view name;
    bool takes_text;
    Status (Chat::*run)(const std::string& text);
  };
  static std::span<const Command> commands();

  ChatPartner& partner_;
  bool is_interactive_;
  int64_t most_tokens_;  // of an answer
  bool is_over_ = false;
  Conversation conversation_;
  uint64_t index_ = 0;  // number of the last answer among the answers to one message
  std::optional<TimedCompletion> last_;
};

std::span<const Chat::Command> Chat::commands() {
  static constexpr Command kCommands[] = {{"/reset", false, &Chat::reset},
                                          {"/regen", false, &Chat::answer_again},
                                          {"/system", true, &Chat::set_system},
                                          {"/think", true, &Chat::think},
                                          {"/save", true, &Chat::save},
                                          {"/load", true, &Chat::load},
                                          {"/private", true, &Chat::say_privately},
                                          {"/stats", false, &Chat::show_statistics},
                                          {"/help", false, &Chat::show_help},
                                          {"/exit", false, &Chat::leave}};
  return kCommands;
}

}  // namespace

Status run_chat(const Settings& settings) {
  OUTRIDER_TRY(const std::unique_ptr<ChatPartner> partner, open_chat_partner(settings));
  OUTRIDER_RETURN_IF_ERROR(partner->check());
  Chat chat(*partner, settings);
  return chat.run();
}

}  // namespace outrider
