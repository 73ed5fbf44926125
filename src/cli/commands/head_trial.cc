// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/head_trial.h"

#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The object that holds the base of RoPE.
json& rope_owner(json& config) {
  json& layer = config.contains("transformer_layer_config") ? config["transformer_layer_config"] : config;
  return layer.contains("rope_parameters") ? layer["rope_parameters"] : layer;
}

Result<json> read_config(const fs::path& path) {
  std::ifstream in(path);
  json config = json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (config.is_object()) return config;
  return input_error(path.string() + ": expected an object, found something else");
}

Status link_files(const fs::path& from, const fs::path& to) {
  std::error_code code;
  for (fs::directory_iterator entry(from, code), end; !code && entry != end; entry.increment(code)) {
    if (entry->path().filename() == "config.json") continue;
    fs::create_symlink(fs::absolute(entry->path()), to / entry->path().filename(), code);
    if (code) break;
  }
  if (code) return io_error(to.string() + ": " + code.message());
  return {};
}

}  // namespace

HeadTrial::~HeadTrial() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<HeadTrial> HeadTrial::with_rope_theta(const fs::path& directory, double theta) {
  OUTRIDER_TRY(json config, read_config(directory / "config.json"));
  rope_owner(config)["rope_theta"] = theta;
  std::error_code code;
  std::string name = (fs::temp_directory_path(code) / "outrider-doctor-XXXXXX").string();
  if (code || ::mkdtemp(name.data()) == nullptr) return io_error("cannot make the directory " + name);
  HeadTrial trial{fs::path(name)};
  OUTRIDER_RETURN_IF_ERROR(link_files(directory, trial.path_));
  std::ofstream out(trial.path_ / "config.json");
  out << config.dump();
  if (!out.flush()) return io_error("cannot write " + (trial.path_ / "config.json").string());
  return trial;
}

}  // namespace outrider
