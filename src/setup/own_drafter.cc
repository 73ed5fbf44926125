// SPDX-License-Identifier: Apache-2.0
#include "setup/own_drafter.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "config/environment.h"
#include "draft_heads/head_fit.h"
#include "drafters/draft_target/vocabulary_match.h"
#include "setup/builtin_models.h"
#include "setup/drafter_search.h"
#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// A draft model with more than this share of the target's bytes takes too long for what it drafts.
constexpr int64_t kTargetOverDraft = 5;

// In the order of their names; none where the folder cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) entries.push_back(entry.path());
  std::ranges::sort(entries);
  return entries;
}

void append(std::vector<fs::path>& paths, const std::vector<fs::path>& more) {
  paths.insert(paths.end(), more.begin(), more.end());
}

// Repositories in the cache of `pull`, and their files.
std::vector<fs::path> cached_entries() {
  std::vector<fs::path> paths;
  for (const fs::path& organisation : entries_of(model_folders().outrider)) {
    const std::vector<fs::path> repositories = entries_of(organisation);
    append(paths, repositories);
    for (const fs::path& repository : repositories) append(paths, entries_of(repository));
  }
  return paths;
}

std::vector<fs::path> shipped_entries() {
  std::vector<fs::path> paths;
  for (const fs::path& folder : shipped_model_folders()) append(paths, entries_of(folder));
  return paths;
}

struct FoundHead {
  fs::path path;
  Method method;
  HeadSummary summary;
};

// The learned drafters among `paths` that fit the target.
std::vector<FoundHead> fitting_heads(const std::vector<fs::path>& paths, const ModelFile& target) {
  const std::string fingerprint = target_fingerprint(target);
  std::vector<FoundHead> heads;
  std::error_code code;
  for (const fs::path& path : paths) {
    if (!fs::exists(path / "config.json", code)) continue;
    const auto head = find_head(path);
    if (!head.ok() || !*head) continue;
    HeadSummary summary = summarize_head(**head);
    if (misfits(summary, target.config, fingerprint).empty())
      heads.push_back({path, (*head)->method, std::move(summary)});
  }
  return heads;
}

// The one that agreed most often among those that name the target.
std::optional<fs::path> best_named(const std::vector<FoundHead>& heads) {
  const FoundHead* best = nullptr;
  for (const FoundHead& head : heads) {
    if (head.summary.target.empty()) continue;
    if (best == nullptr || head.summary.agreement > best->summary.agreement) best = &head;
  }
  return best == nullptr ? std::nullopt : std::optional(best->path);
}

// Those in the cache of `pull`, whose entries are given, and those that come with the program.
std::vector<FoundHead> heads_elsewhere(const std::vector<fs::path>& cached, const ModelFile& target) {
  std::vector<fs::path> paths = cached;
  append(paths, shipped_entries());
  return fitting_heads(paths, target);
}

// Bytes of the weights in a file or a directory; 0: there are none.
int64_t weight_bytes(const fs::path& path) {
  const auto holds_weights = [](const fs::path& file) {
    return file.extension() == ".gguf" || file.extension() == ".safetensors" || file.extension() == ".bin";
  };
  std::error_code code;
  if (!fs::is_directory(path, code))
    return holds_weights(path) ? static_cast<int64_t>(fs::file_size(path, code)) : 0;
  int64_t sum = 0;
  for (const fs::path& file : entries_of(path)) {
    if (holds_weights(file)) sum += static_cast<int64_t>(fs::file_size(file, code));
  }
  return sum;
}

bool has_vocabulary_of(const fs::path& path, const Tokenizer& target) {
  const auto draft = open_model(path);
  if (!draft.ok()) return false;
  const auto tokenizer = Tokenizer::create(draft->tokenizer);
  return tokenizer.ok() && check_same_vocabulary(target, **tokenizer).ok();
}

std::optional<fs::path> smallest_draft(const std::vector<fs::path>& paths, const ModelFile& target) {
  const int64_t limit = weight_bytes(target.path) / kTargetOverDraft;
  std::vector<std::pair<int64_t, fs::path>> small;
  std::error_code code;
  for (const fs::path& path : paths) {
    const bool is_model = path.extension() == ".gguf" || fs::exists(path / "config.json", code);
    const int64_t bytes = is_model ? weight_bytes(path) : 0;
    if (bytes > 0 && bytes <= limit) small.emplace_back(bytes, path);
  }
  if (small.empty()) return std::nullopt;
  std::ranges::sort(small);
  const auto tokenizer = Tokenizer::create(target.tokenizer);
  if (!tokenizer.ok()) return std::nullopt;
  for (const auto& [bytes, path] : small) {
    if (has_vocabulary_of(path, **tokenizer)) return path;
  }
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> find_own_drafter(const fs::path& target) {
  const auto file = open_model(target);
  if (!file.ok()) return std::nullopt;  // opening the engine reports it
  std::vector<fs::path> beside = entries_of(folder_of(target));
  const std::vector<fs::path> cached = cached_entries();
  const std::vector<FoundHead> heads_beside = fitting_heads(beside, *file);
  std::vector<FoundHead> heads = heads_beside;
  std::ranges::copy(heads_elsewhere(cached, *file), std::back_inserter(heads));
  if (auto named = best_named(heads)) return named;
  if (!heads_beside.empty()) return heads_beside.front().path;
  append(beside, cached);
  return smallest_draft(beside, *file);
}

std::optional<fs::path> find_named_head(const fs::path& target, Method method) {
  const auto file = open_model(target);
  if (!file.ok()) return std::nullopt;
  std::vector<FoundHead> heads = heads_elsewhere(cached_entries(), *file);
  std::erase_if(heads, [&](const FoundHead& head) { return head.method != method; });
  return best_named(heads);
}

}  // namespace outrider
