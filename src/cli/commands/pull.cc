// SPDX-License-Identifier: Apache-2.0
#include "hub/pull.h"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/interrupt_guard.h"
#include "cli/commands/commands.h"
#include "cli/download_progress.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "config/environment.h"
#include "draft_heads/head_file.h"
#include "formats/model_file.h"
#include "hub/remote/quant_name.h"
#include "platform/machine_memory.h"

namespace outrider {
namespace {

// The reason why a model cannot run here; empty: it can.
std::string obstacle(const std::filesystem::path& model) {
  const auto head = find_head(model);
  if (!head.ok()) return head.error().message;
  if (*head) return {};
  const auto file = open_model(model);
  return file.ok() ? std::string() : file.error().message;
}

std::string pulled_text(const PullPlan& plan) {
  return fmt::format("{} ({})\n", plan.model().string(), size_text(plan.bytes()));
}

nlohmann::ordered_json pulled_json(const PullPlan& plan) {
  nlohmann::ordered_json json = {{"name", plan.reference.text()},
                                 {"path", plan.model().string()},
                                 {"bytes", plan.bytes()},
                                 {"files", nlohmann::ordered_json::array()}};
  for (const HubFile& file : plan.choice.files) json["files"].push_back(file.path);
  return json;
}

}  // namespace

Status run_pull(const Settings& settings) {
  if (settings.pull.reference.empty())
    return usage_error(
        "expected a model, as in outrider pull smollm2 or outrider pull hf:ORG/REPO; found none");
  OUTRIDER_TRY(const HubReference reference, parse_hub_reference(settings.pull.reference));
  const ModelFolders folders = model_folders();
  if (folders.outrider.empty())
    return usage_error("expected a folder to keep models in; set HOME or XDG_CACHE_HOME");
  const InterruptGuard guard({SIGINT, SIGTERM});
  std::optional<PullPlan> plan;
  {
    DownloadProgress progress;
    OUTRIDER_TRY(HubSession session, HubSession::open(hub_site(), progress));
    OUTRIDER_TRY(plan, session.plan(reference, folders.outrider, machine_memory()));
    if (!plan->choice.reason.empty()) write_error_line(plan->choice.reason);
    OUTRIDER_RETURN_IF_ERROR(session.fetch(*plan));
  }
  if (const std::string reason = obstacle(plan->model()); !reason.empty())
    write_error_line(fmt::format("warning: the model is here, but cannot run: {}", reason));
  write_output(settings.json ? json_line(pulled_json(*plan)) : pulled_text(*plan));
  return {};
}

}  // namespace outrider
