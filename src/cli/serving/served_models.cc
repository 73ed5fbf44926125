// SPDX-License-Identifier: Apache-2.0
#include "cli/serving/served_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/quote.h"
#include "config/config_tree.h"
#include "draft_heads/head_file.h"
#include "formats/model_file.h"
#include "hub/local/local_models.h"
#include "hub/remote/hub_reference.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// Bytes of the weights of a target; nullopt: a drafter, or nothing that can be read.
std::optional<int64_t> target_bytes(const fs::path& path) {
  auto found = open_head_or_files(path);
  if (!found.ok() || found->head) return std::nullopt;
  const auto file = found->files ? open_model(found->files) : open_model(path);
  if (!file.ok()) return std::nullopt;
  int64_t bytes = 0;
  for (const auto& [name, tensor] : file->tensors) bytes += tensor.bytes();
  return bytes;
}

// The shorter names that mean this one of the models: without organisation or quant, of its file, well-known.
std::vector<std::string> short_names(const LocalModel& model, const std::vector<LocalModel>& models) {
  const std::string repository = model.name.substr(0, model.name.rfind(':'));
  std::set<std::string> candidates = {model.name.substr(model.name.find('/') + 1), repository,
                                      repository.substr(repository.find('/') + 1)};
  if (model.path.extension() == ".gguf") candidates.insert(model.path.stem().string());
  for (const KnownModel& known : known_models()) candidates.emplace(known.name);
  std::vector<std::string> names;
  for (const std::string& candidate : candidates) {
    const auto found = look_for_model(candidate, models);
    const bool is_it = found.ok() && *found && (*found)->path == model.path;
    if (is_it && candidate != model.name) names.push_back(candidate);
  }
  return names;
}

std::vector<ServedEntry> models_of_machine(const ModelFolders& folders) {
  std::vector<LocalModel> models;
  std::map<std::string, int64_t> bytes;  // by name
  for (LocalModel& model : list_local_models(folders)) {
    const std::optional<int64_t> weights = target_bytes(model.path);
    if (weights && bytes.emplace(model.name, *weights).second) models.push_back(std::move(model));
  }
  std::vector<ServedEntry> entries;
  for (const LocalModel& model : models) {
    entries.push_back({.name = model.name,
                       .path = model.path,
                       .weight_bytes = bytes.at(model.name),
                       .aliases = short_names(model, models)});
  }
  return entries;
}

std::vector<ServedEntry> models_of_folder(const fs::path& folder) {
  std::vector<ServedEntry> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const fs::path& path = entry.path();
    const bool is_folder = fs::exists(path / "config.json", ignored);
    if (!is_folder && path.extension() != ".gguf") continue;
    const std::string name = is_folder ? path.filename().string() : path.stem().string();
    if (const std::optional<int64_t> bytes = target_bytes(path))
      entries.push_back({.name = name, .path = path, .weight_bytes = *bytes});
  }
  std::ranges::sort(entries, {}, &ServedEntry::name);
  return entries;
}

// Reads a file of entries.
class EntryReader {
 public:
  EntryReader(std::string file, const ModelFolders& folders)
      : file_(std::move(file)), models_(list_local_models(folders)) {}

  Result<ServedEntry> read(const ConfigNode& node) const {
    if (node.kind != ConfigNode::Kind::kMap) return expected("a model with its name", node);
    ServedEntry entry;
    std::string model;
    for (const ConfigMember& member : node.members) {
      if (member.key == "model") {
        OUTRIDER_TRY(model, text_of(member.value));
      } else if (member.key == "name") {
        OUTRIDER_TRY(entry.name, text_of(member.value));
      } else if (member.key == "aliases") {
        OUTRIDER_TRY(entry.aliases, texts_of(member.value));
      } else if (member.key == "pinned") {
        OUTRIDER_TRY(entry.is_pinned, truth_of(member.value));
      } else if (member.key == "options") {
        OUTRIDER_TRY(entry.options, options_of(member.value));
      } else {
        return input_error(fmt::format("{}: unknown key {}; keys: model, name, aliases, pinned, options",
                                       place_in(file_, member.line), quote(member.key)));
      }
    }
    if (model.empty()) return expected("a member \"model\"", node);
    return found(std::move(entry), model, node);
  }

  Error expected(std::string_view what, const ConfigNode& node) const {
    return input_error(fmt::format("{}: expected {}, found {}", place_in(file_, node.line), what,
                                   config_kind_name(node.kind)));
  }

 private:
  Result<ServedEntry> found(ServedEntry entry, const std::string& model, const ConfigNode& node) const {
    entry.path = model;
    if (std::error_code ignored; !fs::exists(entry.path, ignored)) {
      OUTRIDER_TRY(const LocalModel local, find_local_model(model, models_));
      entry.path = local.path;
    }
    if (entry.name.empty()) entry.name = model;
    const std::optional<int64_t> bytes = target_bytes(entry.path);
    if (!bytes)
      return input_error(
          fmt::format("{}: {} is no model that can be served", place_in(file_, node.line), quote(model)));
    entry.weight_bytes = *bytes;
    return entry;
  }
  Result<std::string> text_of(const ConfigNode& node) const {
    if (node.kind != ConfigNode::Kind::kScalar) return expected("a text", node);
    return node.text;
  }
  Result<bool> truth_of(const ConfigNode& node) const {
    if (node.text != "true" && node.text != "false") return expected("true or false", node);
    return node.text == "true";
  }
  Result<std::vector<std::string>> texts_of(const ConfigNode& node) const {
    if (node.kind != ConfigNode::Kind::kList) return expected("a list", node);
    std::vector<std::string> texts;
    for (const ConfigNode& item : node.items) {
      OUTRIDER_TRY(texts.emplace_back(), text_of(item));
    }
    return texts;
  }
  Result<std::map<std::string, std::string>> options_of(const ConfigNode& node) const {
    if (node.kind != ConfigNode::Kind::kMap) return expected("options with their values", node);
    std::map<std::string, std::string> options;
    for (const ConfigMember& member : node.members) {
      OUTRIDER_TRY(options[member.key], text_of(member.value));
    }
    return options;
  }

  std::string file_;
  std::vector<LocalModel> models_;
};

Result<std::vector<ServedEntry>> models_of_list(const fs::path& file, const ModelFolders& folders) {
  OUTRIDER_TRY(const ConfigNode root, read_config_file(file));
  const EntryReader reader(file.filename().string(), folders);
  const bool is_list = root.members.size() == 1 && root.members.front().key == "models" &&
                       root.members.front().value.kind == ConfigNode::Kind::kList;
  if (!is_list) return reader.expected("a list \"models\"", root);
  std::vector<ServedEntry> entries;
  for (const ConfigNode& item : root.members.front().value.items) {
    OUTRIDER_TRY(entries.emplace_back(), reader.read(item));
  }
  return entries;
}

}  // namespace

Result<std::vector<ServedEntry>> find_served_models(std::string_view where, const ModelFolders& folders) {
  std::error_code ignored;
  std::vector<ServedEntry> entries;
  if (where == "all") {
    entries = models_of_machine(folders);
  } else if (fs::is_directory(where, ignored)) {
    entries = models_of_folder(where);
  } else {
    OUTRIDER_TRY(entries, models_of_list(where, folders));
  }
  if (entries.empty())
    return input_error(
        fmt::format("--models: no model in {}; outrider models lists those of this machine, "
                    "outrider pull NAME fetches one",
                    quote(where)));
  std::set<std::string, std::less<>> names;
  for (const ServedEntry& entry : entries) {
    std::vector<std::string> all = entry.aliases;
    all.push_back(entry.name);
    for (const std::string& name : all) {
      if (!names.insert(name).second)
        return input_error(fmt::format("--models: the name {} occurs twice", quote(name)));
    }
  }
  return entries;
}

}  // namespace outrider
