// SPDX-License-Identifier: Apache-2.0
#include "training/core/checkpoint.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/log.h"
#include "platform/durable_file.h"
#include "training/core/safetensors_file.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kPrefix = "step-";
constexpr size_t kCheckpointsKept = 2;

NamedTensors all_tensors(NamedTensors tensors, const Optimizer& optimizer) {
  for (auto& named : optimizer.state()) tensors.push_back(named);
  return tensors;
}

// Complete checkpoints, oldest first: names are zero-padded, so they sort by step.
std::vector<fs::path> complete_checkpoints(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && entry.path().extension() != ".tmp") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<LossPoint> points_from_json(const json& array) {
  std::vector<LossPoint> points;
  for (const json& point : array) points.push_back({point.at(0).get<int64_t>(), point.at(1).get<double>()});
  return points;
}

std::vector<AcceptancePoint> acceptance_from_json(const json& array) {
  std::vector<AcceptancePoint> points;
  for (const json& point : array)
    points.push_back({.step = point.at("step").get<int64_t>(),
                      .agreement = point.at("agreement").get<std::vector<double>>(),
                      .foreseen = point.at("foreseen").get<double>(),
                      .chain = point.at("chain").get<double>(),
                      .tree = point.at("tree").get<double>(),
                      .accepted = point.at("accepted").get<std::vector<double>>(),
                      .ranking = point.value("ranking", 1.0),
                      .shared_tree = point.value("shared_tree", 0.0)});
  return points;
}

Result<RunHistory> load_checkpoint(const fs::path& checkpoint, const NamedTensors& parameters,
                                   Optimizer& optimizer, const std::string& fingerprint) {
  const fs::path state_path = checkpoint / "state.json";
  std::ifstream in(state_path);
  if (!in) return io_error("cannot read " + state_path.string());
  RunHistory history;
  int64_t step = 0;
  try {
    const json state = json::parse(in);
    if (state.at("fingerprint") != fingerprint) {
      return usage_error(checkpoint.string() + " belongs to a run with other options: expected " +
                         fingerprint + ", found " + state.at("fingerprint").get<std::string>() +
                         "; use the same options or another --out");
    }
    step = state.at("step").get<int64_t>();
    history.training = points_from_json(state.at("training_loss"));
    history.held_out = points_from_json(state.at("held_out_loss"));
    history.unfinished = state.value("unfinished", 0.0);
    if (state.contains("acceptance")) history.acceptance = acceptance_from_json(state.at("acceptance"));
  } catch (const json::exception& error) {
    return input_error(state_path.string() + ": " + error.what());
  }

  OUTRIDER_TRY(const NamedTensors stored, read_safetensors(checkpoint / "tensors.safetensors"));
  const std::unordered_map<std::string, at::Tensor> by_name(stored.begin(), stored.end());
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : all_tensors(parameters, optimizer)) {
    const auto found = by_name.find(name);
    if (found == by_name.end() || found->second.sizes() != tensor.sizes()) {
      return input_error(checkpoint.string() + ": tensor " + name + " is missing or has another shape");
    }
    at::Tensor(tensor).copy_(found->second);
  }
  optimizer.set_steps_taken(step);
  return history;
}

}  // namespace

Status save_checkpoint(const fs::path& directory, const NamedTensors& parameters, const Optimizer& optimizer,
                       const RunHistory& history, const std::string& fingerprint) {
  char name[32];
  std::snprintf(name, sizeof name, "%s%09lld", kPrefix, static_cast<long long>(optimizer.steps_taken()));
  const fs::path final_path = directory / name;
  const fs::path temporary = directory / (std::string(name) + ".tmp");
  OUTRIDER_RETURN_IF_ERROR(make_directories(temporary));
  OUTRIDER_RETURN_IF_ERROR(
      write_safetensors(temporary / "tensors.safetensors", all_tensors(parameters, optimizer)));
  const json state = {{"step", optimizer.steps_taken()},
                      {"fingerprint", fingerprint},
                      {"training_loss", points_json(history.training)},
                      {"held_out_loss", points_json(history.held_out)},
                      {"acceptance", points_json(history.acceptance)},
                      {"unfinished", history.unfinished}};
  OUTRIDER_RETURN_IF_ERROR(write_durably(temporary / "state.json", state.dump(1) + "\n"));

  std::error_code error;
  fs::remove_all(final_path, error);
  fs::rename(temporary, final_path, error);
  if (error) return io_error("cannot complete checkpoint " + final_path.string() + ": " + error.message());
  OUTRIDER_RETURN_IF_ERROR(sync_directory(directory));

  const std::vector<fs::path> complete = complete_checkpoints(directory);
  for (size_t i = 0; i + kCheckpointsKept < complete.size(); ++i) fs::remove_all(complete[i], error);
  return {};
}

std::optional<fs::path> latest_checkpoint(const fs::path& directory) {
  const std::vector<fs::path> complete = complete_checkpoints(directory);
  if (complete.empty()) return std::nullopt;
  return complete.back();
}

Result<RunHistory> begin_run(const fs::path& directory, bool resume, const NamedTensors& parameters,
                             Optimizer& optimizer, const std::string& fingerprint) {
  const std::optional<fs::path> latest = latest_checkpoint(directory);
  if (!resume) {
    if (!latest) return RunHistory{};
    return usage_error(directory.parent_path().string() +
                       " already holds a run; go on with --resume or choose another --out");
  }
  if (!latest) return usage_error("nothing to resume: no complete checkpoint in " + directory.string());
  OUTRIDER_TRY(RunHistory history, load_checkpoint(*latest, parameters, optimizer, fingerprint));
  log_info("resuming from " + latest->string());
  return history;
}

Error stopped_error(int64_t step) {
  return input_error("stopped at step " + std::to_string(step) + "; --resume goes on from there");
}

}  // namespace outrider::training
