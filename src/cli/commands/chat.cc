// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/interrupt_guard.h"
#include "cli/reports/draft_view.h"
#include "cli/terminal.h"
#include "cli/timed_completion.h"
#include "setup/open_engine.h"

namespace outrider {
namespace {

constexpr std::string_view kHelp =
    "/reset  start a new conversation\n/stats  figures of the last answer\n/exit   leave (or Ctrl-D)\n"
    "Ctrl-C stops an answer.\n";

class Chat {
 public:
  Chat(Engine& engine, const Settings& settings) : engine_(engine), settings_(settings) { reset(); }

  // Checks that the model has a chat template that works.
  Status check() const {
    const Message greeting = {"user", "hello"};
    auto text = engine_.apply_chat_template({&greeting, 1});
    return text.ok() ? Status() : Status(text.error());
  }

  Status run() {
    const bool interactive = input_is_terminal();
    if (interactive) write_error_text("/help lists the commands\n");
    std::string line;
    while (read_line(line, interactive)) {
      if (line.empty()) continue;
      if (line == "/exit") return {};
      if (line.starts_with('/')) {
        command(line);
        continue;
      }
      const Status answered = answer(line);
      if (answered.ok()) continue;
      if (!interactive) return answered;
      write_error_line(answered.error().message);
    }
    return {};
  }

 private:
  using Message = std::pair<std::string, std::string>;  // role, content

  static bool read_line(std::string& line, bool interactive) {
    if (interactive) write_error_text("> ");
    if (!std::getline(std::cin, line)) return false;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return true;
  }

  void reset() {
    messages_.clear();
    last_.reset();
    if (!settings_.system_message.empty()) messages_.emplace_back("system", settings_.system_message);
  }

  void command(const std::string& line) {
    if (line == "/reset") {
      reset();
    } else if (line == "/stats") {
      write_error_text(last_ ? statistics_line(last_->completion, last_->tokens_per_second()) + "\n"
                             : "nothing was answered yet\n");
    } else if (line == "/help") {
      write_error_text(kHelp);
    } else {
      write_error_text(fmt::format("unknown command {}; commands: /reset /stats /help /exit\n", line));
    }
  }

  Status answer(const std::string& text) {
    messages_.emplace_back("user", text);
    auto timed = generate();
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

  Result<TimedCompletion> generate() {
    OUTRIDER_TRY(const std::string prompt, engine_.apply_chat_template(messages_));
    Request request = settings_.request;
    request.prompt = engine_.tokenize(prompt, false);  // the template writes its own special tokens
    const int64_t context = engine_.info().context;
    if (static_cast<int64_t>(request.prompt.size()) >= context) {
      return resource_error(
          fmt::format("the conversation has {} tokens and the context holds {}; /reset starts a new one",
                      request.prompt.size(), context));
    }
    const InterruptGuard guard({SIGINT});
    return generate_timed(engine_, std::move(request), [this](RequestId id, const Progress& progress) {
      write_output(progress.text);
      std::fflush(stdout);
      if (InterruptGuard::interrupted() && progress.completion == nullptr) engine_.cancel(id);
    });
  }

  Engine& engine_;
  const Settings& settings_;
  std::vector<Message> messages_;
  std::optional<TimedCompletion> last_;
};

}  // namespace

Status run_chat(const Settings& settings) {
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, open_engine(settings));
  Chat chat(*engine, settings);
  OUTRIDER_RETURN_IF_ERROR(chat.check());
  return chat.run();
}

}  // namespace outrider
