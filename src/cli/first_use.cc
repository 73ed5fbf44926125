// SPDX-License-Identifier: Apache-2.0
#include "cli/first_use.h"

#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include "base/interrupt_guard.h"
#include "cli/download_progress.h"
#include "cli/model_list.h"
#include "cli/terminal.h"
#include "config/environment.h"
#include "hub/pull.h"
#include "hub/remote/quant_name.h"
#include "platform/machine_memory.h"

namespace outrider {
namespace {

using FoundModel = Result<std::optional<std::filesystem::path>>;

HubReference usual_file_of(const KnownModel& known) {
  return {.repository = std::string(known.repository), .wanted = std::string(known.usual)};
}

// Asks the person at the terminal.
bool says_yes(const PullPlan& plan) {
  write_error_text(fmt::format("{} is not on this machine. Fetch it ({})? [Y/n] ", plan.reference.text(),
                               size_text(plan.bytes())));
  std::string answer;
  return std::getline(std::cin, answer) && (answer.empty() || answer[0] == 'y' || answer[0] == 'Y');
}

FoundModel fetch_if_wanted(const HubReference& reference, bool asks) {
  const InterruptGuard guard({SIGINT, SIGTERM});
  DownloadProgress progress;
  OUTRIDER_TRY(HubSession session, HubSession::open(hub_site(), progress));
  OUTRIDER_TRY(const PullPlan plan, session.plan(reference, model_folders().outrider, machine_memory()));
  if (asks && !says_yes(plan)) return std::optional<std::filesystem::path>();
  if (!plan.choice.reason.empty()) write_error_line(plan.choice.reason);
  OUTRIDER_RETURN_IF_ERROR(session.fetch(plan));
  return std::optional(plan.model());
}

// Lets the person at the terminal choose a model by its number in the list.
FoundModel choose_from_list() {
  const std::vector<KnownModel> models = fitting_models(machine_memory());
  write_error_text(
      fmt::format("No model is named, and SmolLM2 is not on this machine. These fit into its {}:\n\n{}\n",
                  size_text(machine_memory()), model_list_text(models, measure_memory_rate())));
  for (;;) {
    write_error_text(
        "A number fetches one, Enter the first; n takes the tiny built-in models, which write nonsense: ");
    std::string answer;
    if (!std::getline(std::cin, answer) || answer == "n") return std::optional<std::filesystem::path>();
    size_t number = answer.empty() ? 1 : 0;
    std::from_chars(answer.data(), answer.data() + answer.size(), number);
    if (number >= 1 && number <= models.size())
      return fetch_if_wanted(usual_file_of(models[number - 1]), false);
  }
}

}  // namespace

FirstUse first_use_of(const PullOptions& options) {
  const bool asks = !options.on_first_use;
  const bool may_ask = input_is_terminal() && error_is_terminal();
  if (options.offline || hub_is_offline() || model_folders().outrider.empty() || (asks && !may_ask))
    return {};
  FirstUse first_use;
  first_use.fetch = [asks](const HubReference& reference) { return fetch_if_wanted(reference, asks); };
  first_use.choose = [asks] {
    return asks ? choose_from_list() : fetch_if_wanted(usual_file_of(default_known_model()), false);
  };
  return first_use;
}

}  // namespace outrider
