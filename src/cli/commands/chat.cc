// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/interrupt_guard.h"
#include "cli/commands/chat_partner.h"
#include "cli/commands/commands.h"
#include "cli/terminal.h"

namespace outrider {
namespace {

constexpr std::string_view kHelp =
    "/reset         start a new conversation\n"
    "/private TEXT  say TEXT; the rest of the conversation is not shown to --server\n"
    "/stats         figures of the last answer\n"
    "/exit          leave (or Ctrl-D)\n"
    "Ctrl-C stops an answer.\n";
constexpr std::string_view kPrivate = "/private ";

class Chat {
 public:
  Chat(ChatPartner& partner, const Settings& settings) : partner_(partner), settings_(settings) { reset(); }

  Status run() {
    const bool interactive = input_is_terminal();
    if (interactive) write_error_text("/help lists the commands\n");
    std::string line;
    while (read_line(line, interactive)) {
      if (line.empty()) continue;
      if (line == "/exit") return {};
      const bool is_private = line.starts_with(kPrivate);
      if (line.starts_with('/') && !is_private) {
        command(line);
        continue;
      }
      const Status answered = answer(line.substr(is_private ? kPrivate.size() : 0), is_private);
      if (answered.ok()) continue;
      if (!interactive) return answered;
      write_error_line(answered.error().message);
    }
    return {};
  }

 private:
  static bool read_line(std::string& line, bool interactive) {
    if (interactive) write_error_text("> ");
    if (!std::getline(std::cin, line)) return false;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return true;
  }

  void reset() {
    partner_.begin();
    messages_.clear();
    last_.reset();
    const std::string system = settings_.system_message.value_or("");
    if (!system.empty()) messages_.emplace_back("system", system);
  }

  void command(const std::string& line) {
    if (line == "/reset") {
      reset();
    } else if (line == "/stats") {
      write_error_text(last_ ? partner_.statistics(*last_) : "nothing was answered yet\n");
    } else if (line == "/help") {
      write_error_text(kHelp);
    } else {
      write_error_text(
          fmt::format("unknown command {}; commands: /reset /private TEXT /stats /help /exit\n", line));
    }
  }

  Status answer(const std::string& text, bool is_private) {
    messages_.emplace_back("user", text);
    const InterruptGuard guard({SIGINT});
    auto timed = partner_.answer(messages_, is_private);
    if (!timed.ok()) {
      messages_.pop_back();
      return timed.error();
    }
    write_output("\n");
    std::fflush(stdout);
    messages_.emplace_back("assistant", timed->completion.text);
    last_ = std::move(timed).value();
    return {};
  }

  ChatPartner& partner_;
  const Settings& settings_;
  std::vector<std::pair<std::string, std::string>> messages_;  // role, content
  std::optional<TimedCompletion> last_;
};

}  // namespace

Status run_chat(const Settings& settings) {
  OUTRIDER_TRY(const std::unique_ptr<ChatPartner> partner, open_chat_partner(settings));
  OUTRIDER_RETURN_IF_ERROR(partner->check());
  Chat chat(*partner, settings);
  return chat.run();
}

}  // namespace outrider
