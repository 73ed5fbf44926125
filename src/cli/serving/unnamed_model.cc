// SPDX-License-Identifier: Apache-2.0
#include "cli/serving/unnamed_model.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "cli/serving/served_models.h"
#include "open/model_names.h"

namespace outrider {
namespace {

// Options whose value suits one model.
constexpr std::array<std::string_view, 15> kSuitOne = {"served-model-name",
                                                       "remote-drafting",
                                                       "max-drafting-sessions",
                                                       "max-drafting-sessions-per-key",
                                                       "lora",
                                                       "lora-folder",
                                                       "slot-folder",
                                                       "speculative-model",
                                                       "chat-template",
                                                       "pooling",
                                                       "memory",
                                                       "kv-pages",
                                                       "tensor-parallel",
                                                       "pipeline-parallel",
                                                       "draft-ranks"};
constexpr std::array<std::string_view, 3> kSuitSeveral = {"models-memory", "idle-unload", "pin-model"};

template <typename List>
std::string_view first_given(const Settings& settings, const List& options) {
  const auto is_given = [&](std::string_view option) { return settings.origins.contains(option); };
  const auto found = std::ranges::find_if(options, is_given);
  return found == options.end() ? std::string_view() : *found;
}

std::string_view reason_for_one(const Settings& settings) {
  const SpeculativeOptions& speculation = settings.engine.speculation;
  const std::string_view option = first_given(settings, kSuitOne);
  if (!option.empty()) return option;
  return speculation.speculative_model.empty() && speculation.speculative_models.empty() ? "" : "speculative";
}

bool names_models(const Settings& settings) {
  return settings.origins.contains("model") || !settings.server.models.empty();
}

}  // namespace

void choose_served_models(Settings& settings, const ModelFolders& folders) {
  if (names_models(settings)) return;
  const bool wants_several = !first_given(settings, kSuitSeveral).empty();
  if (!wants_several && (is_mpi_process() || !reason_for_one(settings).empty())) return;
  const auto found = find_served_models("all", folders);
  const bool is_one = found.ok() && found->size() == 1;
  if (!wants_several && !found.ok()) return;
  if (wants_several || !is_one) {
    settings.server.models = "all";
  } else if (found->front().path != default_model_file(folders)) {
    settings.engine.model = found->front().path;
    settings.model_name = found->front().name;
  }
}

std::string one_model_note(const Settings& settings) {
  const std::string_view option = names_models(settings) ? std::string_view() : reason_for_one(settings);
  return option.empty() ? "" : "one model, because of --" + std::string(option);
}

}  // namespace outrider
