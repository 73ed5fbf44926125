// SPDX-License-Identifier: Apache-2.0
#include "open/own_drafter.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "config/environment.h"
#include "config/methods.h"
#include "draft_heads/head_fit.h"
#include "drafters/draft_target/vocabulary_match.h"
#include "open/builtin_models.h"
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

bool holds_config(const fs::path& path) {
  std::error_code code;
  return fs::exists(path / "config.json", code);
}

std::vector<fs::path> directories_among(std::vector<fs::path> paths) {
  std::erase_if(paths, [](const fs::path& path) { return !holds_config(path); });
  return paths;
}

// The directories in the cache of `pull` (its entries are given), and the ones that come with the program.
std::vector<fs::path> directories_elsewhere(std::vector<fs::path> cached) {
  for (const fs::path& folder : shipped_model_folders()) append(cached, entries_of(folder));
  return directories_among(std::move(cached));
}

struct FittingHead {
  HeadFile file;
  HeadSummary summary;
};

// The learned drafters among `paths` that fit the target.
std::vector<FittingHead> fitting_heads(const std::vector<fs::path>& paths, const ModelFile& target) {
  const std::string fingerprint = target_fingerprint(target);
  std::vector<FittingHead> heads;
  std::error_code code;
  for (const fs::path& path : paths) {
    if (fs::equivalent(path, target.path, code)) continue;
    auto found = find_head(path);
    if (!found.ok() || !*found) continue;
    HeadFile& head = **found;
    HeadSummary summary = summarize_head(head);
    if (misfits(summary, target.config, fingerprint).empty())
      heads.push_back({std::move(head), std::move(summary)});
  }
  return heads;
}

// The one that agreed most often among the heads that name the target.
std::optional<HeadFile> take_best_named(std::span<FittingHead> heads) {
  FittingHead* best = nullptr;
  for (FittingHead& head : heads) {
    if (head.summary.target.empty()) continue;
    if (best == nullptr || head.summary.agreement > best->summary.agreement) best = &head;
  }
  return best == nullptr ? std::nullopt : std::optional(std::move(best->file));
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

// The draft model at a path, where it has this vocabulary.
std::optional<ModelFile> open_draft(const fs::path& path, const Tokenizer& vocabulary) {
  auto draft = open_model(path);
  if (!draft.ok()) return std::nullopt;
  const auto tokenizer = Tokenizer::create(draft->tokenizer);
  if (!tokenizer.ok() || !check_same_vocabulary(vocabulary, **tokenizer).ok()) return std::nullopt;
  return std::move(draft).value();
}

std::optional<ModelFile> smallest_draft(const std::vector<fs::path>& paths, const ModelFile& target) {
  const int64_t limit = weight_bytes(target.path) / kTargetOverDraft;
  std::vector<std::pair<int64_t, fs::path>> small;
  for (const fs::path& path : paths) {
    const bool is_model = path.extension() == ".gguf" || holds_config(path);
    const int64_t bytes = is_model ? weight_bytes(path) : 0;
    if (bytes > 0 && bytes <= limit) small.emplace_back(bytes, path);
  }
  if (small.empty()) return std::nullopt;
  std::ranges::sort(small);
  const auto tokenizer = Tokenizer::create(target.tokenizer);
  if (!tokenizer.ok()) return std::nullopt;
  for (const auto& [bytes, path] : small) {
    if (auto draft = open_draft(path, **tokenizer)) return draft;
  }
  return std::nullopt;
}

}  // namespace

fs::path folder_of(const fs::path& model) {
  std::error_code code;
  const fs::path canonical = fs::weakly_canonical(model, code);
  return (code ? model : canonical).parent_path();
}

DraftFiles find_own_drafter(const ModelFile& target) {
  std::vector<fs::path> beside = entries_of(folder_of(target.path));
  const std::vector<fs::path> cached = cached_entries();
  std::vector<FittingHead> heads = fitting_heads(directories_among(beside), target);
  const bool has_beside = !heads.empty();
  std::ranges::move(fitting_heads(directories_elsewhere(cached), target), std::back_inserter(heads));
  DraftFiles found;
  found.head = take_best_named(heads);
  if (!found.head && has_beside) found.head = std::move(heads.front().file);
  if (found.head) return found;
  append(beside, cached);
  if (auto draft = smallest_draft(beside, target)) found.models.push_back(*std::move(draft));
  return found;
}

std::optional<HeadFile> find_trained_head(const ModelFile& target, Method method) {
  if (auto own = open_head(target.path); own.ok() && stands_for(method, own->method))
    return std::move(own).value();
  const auto is_other = [&](const FittingHead& head) { return head.file.method != method; };
  std::vector<FittingHead> beside = fitting_heads(entries_of(folder_of(target.path)), target);
  std::erase_if(beside, is_other);
  if (!beside.empty()) return std::move(beside.front().file);
  std::vector<FittingHead> elsewhere = fitting_heads(directories_elsewhere(cached_entries()), target);
  std::erase_if(elsewhere, is_other);
  return take_best_named(elsewhere);
}

}  // namespace outrider
