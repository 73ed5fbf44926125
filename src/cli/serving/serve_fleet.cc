// SPDX-License-Identifier: Apache-2.0
#include "cli/serving/serve_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "cli/serving/served_models.h"
#include "config/environment.h"
#include "config/option_table.h"
#include "config/settings.h"
#include "config/speculative_config.h"
#include "formats/model_file.h"
#include "models/decoder_weights.h"
#include "open/default_context.h"
#include "open/model_names.h"
#include "platform/machine_memory.h"

namespace outrider {
namespace {

// Options of the server that clients reach. Engines have none of them.
constexpr std::array<std::string_view, 23> kOfFront = {"models",
                                                       "models-memory",
                                                       "idle-unload",
                                                       "pin-model",
                                                       "host",
                                                       "port",
                                                       "ssl-certfile",
                                                       "ssl-keyfile",
                                                       "allowed-host",
                                                       "root-path",
                                                       "chat-page",
                                                       "cors-origin",
                                                       "config",
                                                       "pull",
                                                       "offline",
                                                       "max-connections",
                                                       "max-connections-per-address",
                                                       "no-log-routes",
                                                       "audit-log",
                                                       "batch-folder",
                                                       "batch-folder-size",
                                                       "max-running-per-key",
                                                       "requests-per-minute-per-key"};
// Options that mean one model.
constexpr std::array<std::string_view, 2> kOfOneModel = {"model", "served-model-name"};
// Routes that the server asks of engines by itself, or that it logs.
constexpr std::string_view kAskedByFront =
    "/health,/stats,/metrics,/v1/responses/{id},/v1/responses/{id}/input_items,/v1/requests/{id}/cancel";
constexpr int64_t kBeside = 64LL << 20;  // bytes of an engine beside weights and caches

template <typename List>
bool contains(const List& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

const OptionRow* row_of(std::string_view name) {
  for (const OptionRow& row : option_table()) {
    if (row.name == name && row.belongs_to(Command::kServe)) return &row;
  }
  return nullptr;
}

// The option as one word: "--threads=3".
void append(const OptionRow& row, const std::string& text, std::vector<std::string>& words) {
  const std::string name = "--" + std::string(row.name);
  if (row.type() != OptionType::kFlag) {
    words.push_back(name + "=" + text);
  } else if (text == "true") {
    words.push_back(name);
  }
}

// The options that were given for all models, as words of a command line.
Result<std::vector<std::string>> common_words(const Settings& settings) {
  std::vector<std::string> words;
  for (const auto& [name, origin] : settings.origins) {
    const OptionRow* const row = row_of(name);
    if (row == nullptr || contains(kOfFront, name) || name == "api-key") continue;
    if (contains(kOfOneModel, name))
      return usage_error(fmt::format("expected --{} or --models, found both", name));
    const bool is_speculation =
        row->type() == OptionType::kSpeculation || row->type() == OptionType::kSpeculationKey;
    if (is_speculation) continue;  // its keys may have other names, too
    for (const std::string& text : origin.texts) append(*row, text, words);
  }
  if (settings.speculation_given)
    words.push_back("--speculative=" + speculative_text(settings.engine.speculation));
  return words;
}

Result<std::vector<std::string>> own_words(const ServedEntry& entry) {
  std::vector<std::string> words;
  for (const auto& [name, text] : entry.options) {
    const OptionRow* const row = row_of(name);
    if (row == nullptr || contains(kOfFront, name) || contains(kOfOneModel, name))
      return input_error(
          fmt::format("--models: {} has the option {}, which is none of an engine", entry.name, quote(name)));
    append(*row, text, words);
  }
  return words;
}

std::string_view option_in(std::string_view word) { return word.substr(0, word.find('=')); }

bool has(const std::vector<std::string>& words, std::string_view option) {
  return std::ranges::any_of(words, [&](const std::string& word) { return option_in(word) == option; });
}

// Plans context and cache where no option does: two sequences of the usual context.
Status plan_cache(const ServedEntry& entry, const Settings& settings, FleetModel& model) {
  OUTRIDER_TRY(const ModelFile file, open_model(entry.path));
  const int64_t context = std::min(trained_context(file.config), kUsualContext);
  const int64_t tokens = 2 * context, pages = std::max<int64_t>(tokens / settings.engine.page_size, 1);
  std::vector<std::string>& words = model.arguments;
  if (!has(words, "--ctx")) words.insert(words.end(), {"--ctx", std::to_string(context)});
  if (!has(words, "--kv-pages")) words.insert(words.end(), {"--kv-pages", std::to_string(pages)});
  // A drafter takes about a tenth of its target, and weights are laid out anew for the kernels.
  model.bytes = entry.weight_bytes + entry.weight_bytes / 4 + kBeside +
                tokens * cache_bytes_per_token(file.config, DType::kBF16);
  return {};
}

Result<FleetModel> fleet_model(const ServedEntry& entry, const Settings& settings,
                               const std::vector<std::string>& common) {
  FleetModel model{.name = entry.name, .aliases = entry.aliases, .arguments = {"serve", entry.path.string()}};
  std::string names = entry.name;
  for (const std::string& alias : entry.aliases) names += "," + alias;
  model.arguments.insert(model.arguments.end(), {"--served-model-name", names});
  std::string silent(kAskedByFront);
  for (const std::string& route : settings.server.no_log_routes) silent += "," + route;
  model.arguments.insert(model.arguments.end(), {"--no-log-routes", silent});
  OUTRIDER_TRY(const std::vector<std::string> own, own_words(entry));
  for (const std::string& word : common) {
    if (!has(own, option_in(word))) model.arguments.push_back(word);
  }
  model.arguments.insert(model.arguments.end(), own.begin(), own.end());
  OUTRIDER_RETURN_IF_ERROR(plan_cache(entry, settings, model));
  return model;
}

// Options in the environment are words of the command by now, but for keys, which should not be seen there.
std::vector<std::string> engine_environment(const Settings& settings) {
  std::set<std::string, std::less<>> names = {"NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID"};
  for (const OptionRow& row : option_table()) names.insert(row.environment_name());
  std::vector<std::string> variables = environment_without(names);
  std::string keys;
  for (const std::string& key : settings.server.api_keys) keys += (keys.empty() ? "" : ",") + key;
  if (!keys.empty()) variables.push_back("OUTRIDER_API_KEY=" + keys);
  return variables;
}

Status pin(const std::vector<std::string>& pinned, std::vector<FleetModel>& models) {
  for (const std::string& name : pinned) {
    const auto found = std::ranges::find_if(
        models, [&](const FleetModel& model) { return model.name == name || contains(model.aliases, name); });
    if (found == models.end()) return input_error(fmt::format("--pin-model: no model {}", quote(name)));
    found->is_pinned = true;
  }
  return {};
}

Status check_pinned(const std::vector<FleetModel>& models, int64_t memory) {
  int64_t bytes = 0;
  for (const FleetModel& model : models) bytes += model.is_pinned ? model.bytes : 0;
  if (bytes <= memory) return {};
  return resource_error(
      fmt::format("the pinned models need {} MB, and engines may have {} MB; raise --models-memory",
                  bytes >> 20, memory >> 20));
}

// `memory`: bytes for all engines.
Result<std::vector<FleetModel>> fleet_models(const Settings& settings, int64_t memory) {
  OUTRIDER_TRY(const std::vector<ServedEntry> entries,
               find_served_models(settings.server.models, model_folders()));
  OUTRIDER_TRY(const std::vector<std::string> common, common_words(settings));
  std::vector<FleetModel> models;
  for (const ServedEntry& entry : entries) {
    OUTRIDER_TRY(FleetModel model, fleet_model(entry, settings, common));
    model.is_pinned = entry.is_pinned;
    model.is_default = settings.server.models == "all" && entry.path == default_model_file(model_folders());
    models.push_back(std::move(model));
  }
  OUTRIDER_RETURN_IF_ERROR(pin(settings.server.pinned, models));
  OUTRIDER_RETURN_IF_ERROR(check_pinned(models, memory));
  return models;
}

}  // namespace

Result<FleetOptions> fleet_options(const Settings& settings) {
  if (!settings.engine.model.empty()) return usage_error("expected MODEL or --models, found both");
  FleetOptions fleet{.program = std::filesystem::read_symlink("/proc/self/exe"),
                     .environment = engine_environment(settings),
                     .memory = settings.server.models_memory,
                     .idle_unload = settings.server.idle_unload,
                     .drain_timeout = settings.server.drain_timeout};
  if (fleet.memory == 0) fleet.memory = available_memory() / 10 * 9;
  fleet.read_models = [settings, memory = fleet.memory] { return fleet_models(settings, memory); };
  OUTRIDER_TRY(fleet.models, fleet.read_models());
  return fleet;
}

}  // namespace outrider
