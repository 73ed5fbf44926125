// SPDX-License-Identifier: Apache-2.0
#include "hub/local/model_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/json_reader.h"
#include "hub/remote/quant_name.h"
#include "hub/transfer/checksum.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxManifestDepth = 32;
constexpr size_t kMaxLayers = 1000;

int64_t size_of(const fs::path& file) {
  std::error_code code;
  const auto size = fs::file_size(file, code);  // of the target of a link
  return code ? 0 : static_cast<int64_t>(size);
}

bool is_folder(const fs::path& path) {
  std::error_code code;
  return fs::is_directory(path, code);
}

bool is_file(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code);
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code code;
  if (folder.empty()) return entries;
  for (const auto& entry : fs::directory_iterator(folder, code)) entries.push_back(entry.path());
  std::ranges::sort(entries);
  return entries;
}

// The GGUF models in a folder, the shards of each counted as one.
std::vector<LocalModel> gguf_models(const fs::path& folder, std::string_view place) {
  std::vector<LocalModel> models;
  std::map<std::string, int64_t> shard_bytes;
  for (const fs::path& entry : sorted_entries(folder)) {
    const std::string name = entry.filename().string();
    if (!is_model_file_name(name) || !is_file(entry)) continue;
    const auto shard = shard_place(name);
    if (shard) shard_bytes[shard->stem] += size_of(entry);
    if (shard && shard->index != 1) continue;
    models.push_back({.name = shard ? shard->stem : entry.stem().string(),
                      .path = entry,
                      .place = std::string(place),
                      .quant = quant_of_file_name(name),
                      .bytes = size_of(entry)});
  }
  for (LocalModel& model : models) {
    if (const auto found = shard_bytes.find(model.name); found != shard_bytes.end())
      model.bytes = found->second;
  }
  return models;
}

int64_t weight_bytes(const fs::path& folder) {
  int64_t bytes = 0;
  for (const fs::path& entry : sorted_entries(folder)) {
    if (entry.extension() == ".safetensors" || entry.extension() == ".bin" || entry.extension() == ".pt")
      bytes += size_of(entry);
  }
  return bytes;
}

// The folder, if it is a model or a drafter in Hugging Face's layout.
void add_folder(const fs::path& folder, std::string name, std::string_view place,
                std::vector<LocalModel>& models) {
  const int64_t bytes = is_file(folder / "config.json") ? weight_bytes(folder) : 0;
  if (bytes == 0) return;
  models.push_back(
      {.name = std::move(name), .path = folder, .place = std::string(place), .quant = {}, .bytes = bytes});
}

// The folder itself, if it is a model, and the models in it and in its folders.
void scan_repository(const fs::path& folder, const std::string& repository, std::string_view place,
                     std::vector<LocalModel>& models) {
  add_folder(folder, repository, place, models);
  std::vector<LocalModel> files = gguf_models(folder, place);
  for (const fs::path& entry : sorted_entries(folder)) {
    if (!is_folder(entry)) continue;
    add_folder(entry, fmt::format("{}:{}", repository, entry.filename().string()), place, models);
    std::ranges::move(gguf_models(entry, place), std::back_inserter(files));
  }
  for (LocalModel& file : files) {
    const bool is_unique =
        !file.quant.empty() && std::ranges::count(files, file.quant, &LocalModel::quant) == 1;
    file.name = fmt::format("{}:{}", repository, is_unique ? file.quant : file.path.filename().string());
  }
  std::ranges::move(files, std::back_inserter(models));
}

std::string text_of_file(const fs::path& file, size_t max_bytes) {
  std::error_code code;
  if (!fs::is_regular_file(file, code)) return {};
  std::ifstream stream(file, std::ios::binary);
  std::string text(max_bytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(max_bytes));
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

fs::path snapshot_of(const fs::path& cached) {
  const std::string commit = text_of_file(cached / "refs" / "main", 40);
  if (is_hex_digest(commit, 20) && is_folder(cached / "snapshots" / commit))
    return cached / "snapshots" / commit;
  const std::vector<fs::path> snapshots = sorted_entries(cached / "snapshots");
  return snapshots.empty() ? fs::path() : snapshots.back();
}

}  // namespace

void scan_repositories(const fs::path& folder, std::string_view place, std::vector<LocalModel>& models) {
  for (const fs::path& organisation : sorted_entries(folder)) {
    for (const fs::path& repository : sorted_entries(organisation)) {
      const std::string name = (organisation.filename() / repository.filename()).string();
      if (is_folder(repository)) scan_repository(repository, name, place, models);
    }
  }
}

void scan_hub_cache(const fs::path& folder, std::string_view place, std::vector<LocalModel>& models) {
  constexpr std::string_view kPrefix = "models--";
  for (const fs::path& cached : sorted_entries(folder)) {
    std::string name = cached.filename().string();
    if (!name.starts_with(kPrefix)) continue;
    name.erase(0, kPrefix.size());
    if (const size_t dashes = name.find("--"); dashes != std::string::npos) name.replace(dashes, 2, "/");
    if (const fs::path snapshot = snapshot_of(cached); !snapshot.empty())
      scan_repository(snapshot, name, place, models);
  }
}

void scan_files(const fs::path& folder, std::string_view place, std::vector<LocalModel>& models) {
  std::ranges::move(gguf_models(folder, place), std::back_inserter(models));
}

std::optional<std::string> ollama_weights(std::string_view manifest) {
  const auto document = JsonDocument::parse(manifest, kMaxManifestDepth);
  if (!document.ok()) return std::nullopt;
  const auto layers = document->root().find("layers");
  if (!layers) return std::nullopt;
  const auto items = layers->items(kMaxLayers);
  if (!items.ok()) return std::nullopt;
  for (const JsonField& layer : *items) {
    const auto type = layer.string_at("mediaType", "");
    const auto digest = layer.string_at("digest", "");
    if (!type.ok() || !digest.ok() || *type != "application/vnd.ollama.image.model") continue;
    const std::string_view hex = digest->substr(std::min(digest->size(), std::string_view("sha256:").size()));
    if (digest->starts_with("sha256:") && is_hex_digest(hex, 32)) return std::string(hex);
  }
  return std::nullopt;
}

void scan_ollama(const fs::path& folder, std::vector<LocalModel>& models) {
  constexpr size_t kMaxManifest = 1 << 20;
  const fs::path manifests = folder / "manifests";
  std::error_code code;
  std::vector<fs::path> tags;
  if (folder.empty()) return;
  for (const auto& entry : fs::recursive_directory_iterator(manifests, code)) {
    if (is_file(entry.path())) tags.push_back(entry.path());
  }
  std::ranges::sort(tags);
  for (const fs::path& tag : tags) {
    const auto hex = ollama_weights(text_of_file(tag, kMaxManifest));
    if (!hex) continue;
    const fs::path blob = folder / "blobs" / ("sha256-" + *hex);
    if (!is_file(blob)) continue;
    std::string name = tag.parent_path().lexically_relative(manifests).string();
    for (const std::string_view usual : {"registry.ollama.ai/library/", "registry.ollama.ai/"}) {
      if (name.starts_with(usual)) name.erase(0, usual.size());
    }
    models.push_back({.name = fmt::format("{}:{}", name, tag.filename().string()),
                      .path = blob,
                      .place = "ollama",
                      .quant = {},
                      .bytes = size_of(blob)});
  }
}

}  // namespace outrider
