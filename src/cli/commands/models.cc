// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/model_list.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "config/environment.h"
#include "config/methods.h"
#include "draft_heads/head_file.h"
#include "formats/model_file.h"
#include "hub/local/local_models.h"
#include "hub/remote/hub_reference.h"
#include "hub/remote/quant_name.h"
#include "open/device_choice.h"
#include "platform/machine_memory.h"

namespace outrider {
namespace {

// A model with all that its files say.
struct ListedModel {
  LocalModel model;
  std::string family;         // "llama"; of a drafter its method; empty: unknown
  std::string obstacle;       // why it cannot run; empty: it can
  int64_t gpu_bytes = 0;      // that it takes of the memory of a GPU; 0: not known
  std::string gpu_part = {};  // of it, where the GPU of this machine has no memory for all; empty: all
};

// The type that holds most of the bytes, in capitals as in the names of files.
std::string main_type(const ModelFile& file) {
  std::map<std::string_view, int64_t> bytes;
  for (const auto& [name, tensor] : file.tensors) bytes[dtype_name(tensor.dtype)] += tensor.bytes();
  if (bytes.empty()) return {};
  const auto by_bytes = [](const auto& a, const auto& b) { return a.second < b.second; };
  return upper_case(std::max_element(bytes.begin(), bytes.end(), by_bytes)->first);
}

ListedModel examine(LocalModel model) {
  ListedModel listed{.model = std::move(model), .family = {}, .obstacle = {}, .gpu_bytes = 0};
  auto found = open_head_or_files(listed.model.path);
  if (found.ok() && found->head) {
    listed.family = method_name(found->head->method);
    return listed;
  }
  const auto file = found.ok() && found->files ? open_model(found->files) : open_model(listed.model.path);
  if (!file.ok()) {
    listed.obstacle = file.error().message;
    return listed;
  }
  listed.family = file->config.family;
  if (listed.model.quant.empty()) listed.model.quant = main_type(*file);
  const Placement placement = expected_placement({}, *file);
  listed.gpu_bytes = device_needs({}, *file, placement).bytes();
  if (placement.is_split()) listed.gpu_part = placement_text(placement, file->config);
  if (listed.model.bytes > machine_memory())
    listed.obstacle = fmt::format("larger than this machine's memory of {}", size_text(machine_memory()));
  return listed;
}

nlohmann::ordered_json models_json(const std::vector<ListedModel>& models) {
  auto json = nlohmann::ordered_json::array();
  for (const ListedModel& listed : models) {
    json.push_back({{"name", listed.model.name},
                    {"path", listed.model.path.string()},
                    {"place", listed.model.place},
                    {"family", listed.family},
                    {"quant", listed.model.quant},
                    {"bytes", listed.model.bytes},
                    {"gpu_bytes", listed.gpu_bytes},
                    {"gpu_part", listed.gpu_part},
                    {"runs", listed.obstacle.empty()},
                    {"reason", listed.obstacle}});
  }
  return json;
}

std::string runs_text(const ListedModel& listed) {
  if (!listed.obstacle.empty()) return "no: " + listed.obstacle;
  return listed.gpu_part.empty() ? "yes" : fmt::format("yes, {} on the GPU", listed.gpu_part);
}

std::string models_text(const std::vector<ListedModel>& models) {
  size_t width = 4;
  for (const ListedModel& listed : models) width = std::max(width, listed.model.name.size());
  std::string text = fmt::format("{:<{}}  {:<8} {:<8} {:>9} {:>9}  {:<11} {}\n", "name", width, "family",
                                 "quant", "size", "on a GPU", "place", "runs");
  for (const ListedModel& listed : models) {
    text += fmt::format("{:<{}}  {:<8} {:<8} {:>9} {:>9}  {:<11} {}\n", listed.model.name, width,
                        listed.family.empty() ? "-" : listed.family,
                        listed.model.quant.empty() ? "-" : listed.model.quant, size_text(listed.model.bytes),
                        listed.gpu_bytes == 0 ? "-" : size_text(listed.gpu_bytes), listed.model.place,
                        runs_text(listed));
  }
  return text;
}

}  // namespace

Status run_models(const Settings& settings) {
  std::vector<ListedModel> models;
  for (LocalModel& model : list_local_models(model_folders())) models.push_back(examine(std::move(model)));
  if (settings.json) {
    write_output(json_line(models_json(models)));
  } else if (models.empty()) {
    const std::vector<KnownModel> known = fitting_models(machine_memory());
    write_error_line(
        "no models on this machine; outrider pull NAME fetches one of these, which fit into its memory:");
    write_error_text(model_list_text(known, measure_memory_rate()));
  } else {
    write_output(models_text(models));
  }
  return {};
}

}  // namespace outrider
