// SPDX-License-Identifier: Apache-2.0
#include "hub/pull.h"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/interrupt_guard.h"
#include "cli/commands/commands.h"
#include "cli/download_progress.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "config/environment.h"
#include "draft_heads/head_file.h"
#include "formats/model_file.h"
#include "hub/remote/quant_name.h"
#include "open/drafter_report.h"
#include "open/drafters/drafter_search.h"
#include "open/drafters/known_heads.h"
#include "open/drafters/normal_name.h"
#include "platform/machine_memory.h"

namespace outrider {
namespace {

// Warns of a model that cannot run here, and says what would draft for it, or could.
Status report_model(const HubReference& reference, const std::filesystem::path& model,
                    const std::vector<KnownHead>& published) {
  OUTRIDER_TRY(const HeadOrFiles found, open_head_or_files(model));
  if (found.head) return {};
  OUTRIDER_TRY(const ModelFile file, found.files ? open_model(found.files) : open_model(model));
  const DrafterSearch search = find_drafters(file);
  if (!search.found.empty()) {
    write_error_line(fmt::format("auto drafts for it: {}", text_of(drafter_lines(search).front())));
  } else if (!published.empty()) {
    write_error_line(
        fmt::format("a drafter for it is published: {} ({}); outrider pull {} --with-drafter fetches it",
                    published.front().repository, published.front().method, reference.text()));
  }
  return {};
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

// The drafter to fetch along; nullopt: none was asked for. Error: none is known.
Result<std::optional<HubReference>> wanted_drafter(const Settings& settings, const HubReference& reference,
                                                   const std::vector<KnownHead>& published) {
  if (!settings.pull.with_drafter) return std::optional<HubReference>();
  if (!published.empty())
    return std::optional(HubReference{.repository = std::string(published.front().repository), .wanted = {}});
  return input_error(
      fmt::format("--with-drafter: expected a model with a published drafter, found {}, for which none is "
                  "known; leave it "
                  "out, and outrider inspect lists the drafters of this machine",
                  reference.text()));
}

Result<PullPlan> fetch(HubSession& session, const HubReference& reference,
                       const std::filesystem::path& folder) {
  OUTRIDER_TRY(PullPlan plan, session.plan(reference, folder, machine_memory()));
  if (!plan.choice.reason.empty()) write_error_line(plan.choice.reason);
  OUTRIDER_RETURN_IF_ERROR(session.fetch(plan));
  return plan;
}

}  // namespace

Status run_pull(const Settings& settings) {
  if (settings.pull.reference.empty())
    return usage_error(
        "expected a model, as in outrider pull smollm2 or outrider pull hf:ORG/REPO; found none");
  OUTRIDER_TRY(const HubReference reference, parse_hub_reference(settings.pull.reference));
  if (settings.pull.offline || hub_is_offline())
    return usage_error("pull needs the Hub, and --offline or HF_HUB_OFFLINE forbids it");
  const ModelFolders folders = model_folders();
  if (folders.outrider.empty())
    return usage_error("expected a folder to keep models in; set HOME or XDG_CACHE_HOME");
  const InterruptGuard guard({SIGINT, SIGTERM});
  const std::vector<KnownHead> published = known_heads_for(normal_name(reference.repository));
  OUTRIDER_TRY(const std::optional<HubReference> wanted, wanted_drafter(settings, reference, published));
  std::optional<PullPlan> plan, drafter;
  {
    DownloadProgress progress;
    OUTRIDER_TRY(HubSession session, HubSession::open(hub_site(), progress));
    OUTRIDER_TRY(plan, fetch(session, reference, folders.outrider));
    if (wanted) {
      OUTRIDER_TRY(drafter, fetch(session, *wanted, folders.outrider));
    }
  }
  if (const Status runs = report_model(reference, plan->model(), published); !runs.ok())
    write_error_line(fmt::format("warning: the model is here, but cannot run: {}", runs.error().message));
  if (settings.json) {
    nlohmann::ordered_json json = pulled_json(*plan);
    if (drafter) json["drafter"] = pulled_json(*drafter);
    write_output(json_line(json));
  } else {
    write_output(pulled_text(*plan) + (drafter ? pulled_text(*drafter) : ""));
  }
  return {};
}

}  // namespace outrider
