// SPDX-License-Identifier: Apache-2.0
#include "hub/local/local_models.h"

#include <fmt/format.h>

#include <utility>

#include "base/quote.h"
#include "hub/local/model_scan.h"
#include "hub/remote/hub_reference.h"
#include "hub/remote/quant_name.h"

namespace outrider {
namespace {

std::string_view without_organisation(std::string_view name) { return name.substr(name.rfind('/') + 1); }

// All names are in capitals.
bool has_name(const LocalModel& model, const std::string& wanted) {
  const std::string name = upper_case(model.name);
  const std::string file = upper_case(model.path.filename().string());
  const std::string stem = upper_case(model.path.stem().string());
  if (wanted == name || wanted == file || wanted == stem) return true;
  const size_t colon = wanted.find(':');
  const std::string_view base = std::string_view(name).substr(0, name.find(':'));
  const std::string_view wanted_base = std::string_view(wanted).substr(0, colon);
  if (wanted_base != base && wanted_base != without_organisation(base)) return false;
  if (colon == std::string::npos) return true;
  const std::string_view variant = std::string_view(wanted).substr(colon + 1);
  return variant == file ||
         (name.find(':') != std::string::npos && variant == name.substr(name.find(':') + 1));
}

// A known name as the name of the model that it stands for.
std::string full_name(std::string_view name) {
  const auto reference = parse_hub_reference(name);
  if (!reference.ok()) return std::string(name);
  return reference->wanted.empty() ? reference->repository
                                   : fmt::format("{}:{}", reference->repository, reference->wanted);
}

Error nothing_found(std::string_view name) {
  const auto reference = parse_hub_reference(name);
  return input_error(fmt::format(
      "no such model: {} is neither a path nor a model on this machine; outrider models lists "
      "those there are{}",
      quote(name), reference.ok() ? fmt::format(", outrider pull {} fetches it, as --pull does", name) : ""));
}

}  // namespace

std::vector<LocalModel> list_local_models(const ModelFolders& folders) {
  std::vector<LocalModel> models;
  scan_repositories(folders.outrider, "outrider", models);
  scan_hub_cache(folders.hugging_face, "huggingface", models);
  scan_files(folders.llama_cpp, "llama.cpp", models);
  if (folders.llama_cpp != folders.hugging_face) scan_hub_cache(folders.llama_cpp, "llama.cpp", models);
  for (const auto& folder : folders.lm_studio) scan_repositories(folder, "lm-studio", models);
  for (const auto& folder : folders.ollama) scan_ollama(folder, models);
  return models;
}

Result<LocalModel> find_local_model(std::string_view name, const std::vector<LocalModel>& models) {
  OUTRIDER_TRY(std::optional<LocalModel> found, look_for_model(name, models));
  return found ? Result<LocalModel>(std::move(*found)) : nothing_found(name);
}

Result<std::optional<LocalModel>> look_for_model(std::string_view name,
                                                 const std::vector<LocalModel>& models) {
  const std::string wanted = upper_case(full_name(name));
  std::vector<const LocalModel*> found, exact;
  for (const LocalModel& model : models) {
    if (has_name(model, wanted)) found.push_back(&model);
    if (upper_case(model.name) == wanted) exact.push_back(&model);
  }
  if (exact.size() == 1) return std::optional(*exact.front());
  if (found.size() == 1) return std::optional(*found.front());
  if (found.empty()) return std::optional<LocalModel>();
  std::string candidates;
  for (const LocalModel* model : found)
    candidates += fmt::format("{}{} ({})", candidates.empty() ? "" : ", ", model->name, model->path.string());
  return usage_error(fmt::format("{} names {} models: {}; name one of them, or give its path", quote(name),
                                 found.size(), candidates));
}

}  // namespace outrider
