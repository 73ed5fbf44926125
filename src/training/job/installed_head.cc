// SPDX-License-Identifier: Apache-2.0
#include "training/job/installed_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "config/environment.h"
#include "draft_heads/head_file.h"
#include "draft_heads/head_fit.h"
#include "open/drafters/drafter_places.h"
#include "open/drafters/drafter_search.h"
#include "platform/durable_file.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;

// Error: the folder holds something that is no head for the same target.
Status check_replaceable(const fs::path& head, const fs::path& to) {
  std::error_code code;
  if (!fs::exists(to, code)) return {};
  const auto ours = open_head(head), there = open_head(to);
  if (ours.ok() && there.ok() && there->method == ours->method &&
      summarize_head(*there).target == summarize_head(*ours).target)
    return {};
  return usage_error(to.string() +
                     " exists and is no head of this kind for this model; name another folder " +
                     "with --install");
}

// Whether another program keeps its models there.
bool is_kept_by_others(const fs::path& model) {
  const ModelFolders folders = model_folders();
  std::vector<fs::path> places = folders.lm_studio;
  places.insert(places.end(), folders.ollama.begin(), folders.ollama.end());
  places.insert(places.end(), {folders.hugging_face, folders.llama_cpp});
  const std::string path = fs::absolute(model).lexically_normal().string();
  const auto holds = [&](const fs::path& place) {
    return !place.empty() && path.starts_with((place / "").lexically_normal().string());
  };
  return std::ranges::any_of(places, holds);
}

}  // namespace

std::string model_stem(const fs::path& model) {
  const fs::path name = fs::absolute(model).lexically_normal();
  const fs::path last = name.has_filename() ? name.filename() : name.parent_path().filename();
  return last.extension() == ".gguf" ? last.stem().string() : last.string();
}

fs::path place_of_heads(const ModelFile& target) {
  const fs::path beside = folder_of(target.path);
  if (!is_kept_by_others(target.path) && check_writable(beside / "outrider-head").ok()) return beside;
  return model_folders().outrider / "trained";
}

// The folder gets its name when all files are in it.
Status install_head(const fs::path& head, const fs::path& to) {
  OUTRIDER_RETURN_IF_ERROR(check_replaceable(head, to));
  const fs::path unfinished = to.string() + ".tmp";
  std::error_code code;
  fs::remove_all(unfinished, code);
  OUTRIDER_RETURN_IF_ERROR(make_directories(unfinished));
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::copy_file(head / name, unfinished / name, code);
    if (code)
      return io_error(fmt::format("cannot copy {} to {}: {}", name, unfinished.string(), code.message()));
  }
  OUTRIDER_RETURN_IF_ERROR(sync_directory(unfinished));
  fs::remove_all(to, code);
  fs::rename(unfinished, to, code);
  if (code) return io_error(fmt::format("cannot make {}: {}", to.string(), code.message()));
  return sync_directory(to.parent_path());
}

Status check_found(const ModelFile& target, const fs::path& head) {
  const DrafterSearch search = find_drafters(target, {.models = 0});
  std::error_code code;
  if (!search.found.empty() && fs::equivalent(search.found.front().path, head, code)) return {};
  for (const LeftOutDrafter& left_out : search.left_out) {
    if (fs::equivalent(left_out.path, head, code))
      return input_error(fmt::format("{} does not fit the model: {}", head.string(), left_out.reason));
  }
  if (search.found.empty())
    return input_error("auto finds no drafter for the model, not even " + head.string());
  const FoundDrafter& first = search.found.front();
  return input_error(fmt::format("auto takes {} ({}), which agrees more often with the model: {:.2f}",
                                 first.path.string(), evidence_text(first.evidence), first.agreement));
}

}  // namespace outrider::training
