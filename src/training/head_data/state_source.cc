// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/state_source.h"

#include <ATen/ATen.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/counter_rng.h"
#include "base/log.h"
#include "platform/durable_file.h"
#include "training/core/safetensors_file.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;

// The parts of a window's states and their names in its file.
constexpr std::pair<const char*, at::Tensor TargetStates::*> kParts[] = {
    {"hidden", &TargetStates::hidden},
    {"features", &TargetStates::features},
    {"keys_values", &TargetStates::keys_values},
    {"likeliest", &TargetStates::likeliest}};

}  // namespace

Result<StateSource> StateSource::open(FrozenTarget& target, const Options& options) {
  StateSource source(target, options);
  if (options.folder.empty()) return source;
  OUTRIDER_RETURN_IF_ERROR(make_directories(options.folder));
  const fs::path description = options.folder / "description.json";
  const nlohmann::json facts = {
      {"target", target.fingerprint()},        {"arithmetic", target.arithmetic()},
      {"taps", target.needs().taps},           {"keys_values", target.needs().keys_values},
      {"likeliest", target.needs().likeliest}, {"type", c10::toString(target.needs().type)}};
  std::ifstream in(description);
  const nlohmann::json found = in ? nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false) : facts;
  if (found != facts) {
    return usage_error("--feature-cache: " + options.folder.string() +
                       " holds the states of another run; remove it or name another folder");
  }
  OUTRIDER_RETURN_IF_ERROR(write_durably(description, facts.dump(1) + "\n"));
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options.folder, error)) {
    if (entry.is_regular_file(error)) source.bytes_ += static_cast<int64_t>(entry.file_size(error));
  }
  return source;
}

fs::path StateSource::path_of(const Window& window) const {
  uint64_t hash = 0;
  for (const TokenId token : window.tokens) hash = mix64(hash ^ static_cast<uint64_t>(token + 1));
  char name[40];
  std::snprintf(name, sizeof name, "%016llx.safetensors", static_cast<unsigned long long>(hash));
  return options_.folder / name;
}

Result<TargetStates> StateSource::read(const Window& window) const {
  OUTRIDER_TRY(const NamedTensors stored, read_safetensors(path_of(window)));
  TargetStates states;
  for (const auto& [name, tensor] : stored) {
    for (const auto& [part, member] : kParts) {
      if (name == part && tensor.size(0) == std::ssize(window.tokens)) states.*member = tensor;
    }
  }
  const FeatureNeeds& needs = target_->needs();
  if (states.hidden.defined() && states.features.defined() == !needs.taps.empty() &&
      states.keys_values.defined() == needs.keys_values && states.likeliest.defined() == needs.likeliest) {
    return states;
  }
  return input_error(path_of(window).string() + ": not the states of this window; remove the file");
}

// A full folder or disk is no error: further states are computed every time.
void StateSource::keep(const Window& window, const TargetStates& states) {
  NamedTensors parts;
  int64_t bytes = 0;
  for (const auto& [name, member] : kParts) {
    if (!(states.*member).defined()) continue;
    parts.emplace_back(name, states.*member);
    bytes += static_cast<int64_t>((states.*member).nbytes());
  }
  is_full_ = bytes_ + bytes > options_.max_bytes;
  if (is_full_) {
    log_info("the feature cache is full; states of further windows are computed every time");
    return;
  }
  const Status written = write_safetensors(path_of(window), parts);
  is_full_ = !written.ok();
  if (is_full_) log_info("the feature cache takes no more: " + written.error().message);
  bytes_ += bytes;
}

Result<std::vector<TargetStates>> StateSource::states(std::span<const Window> windows) {
  std::vector<TargetStates> found(windows.size());
  std::vector<size_t> missing;
  std::vector<std::span<const TokenId>> texts;
  for (size_t i = 0; i < windows.size(); ++i) {
    if (is_kept(windows[i]) && fs::exists(path_of(windows[i]))) {
      OUTRIDER_TRY(found[i], read(windows[i]));
      continue;
    }
    missing.push_back(i);
    texts.push_back(windows[i].tokens);
  }
  if (missing.empty()) return found;
  OUTRIDER_TRY(std::vector<TargetStates> computed, target_->run(texts));
  for (size_t i = 0; i < missing.size(); ++i) {
    if (is_kept(windows[missing[i]]) && !is_full_) keep(windows[missing[i]], computed[i]);
    found[missing[i]] = std::move(computed[i]);
  }
  return found;
}

}  // namespace outrider::training
