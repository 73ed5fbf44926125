// SPDX-License-Identifier: Apache-2.0
#include "setup/drafter_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "draft_heads/head_fit.h"
#include "drafters/draft_target/vocabulary_match.h"
#include "drafters/resolve.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

class Search {
 public:
  explicit Search(const ModelFile& target) : target_(target), fingerprint_(target_fingerprint(target)) {}

  Status look_into(const fs::path& folder) {
    std::error_code code;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(folder, code)) paths.push_back(entry.path());
    if (code) {
      return input_error(
          fmt::format("expected a folder of drafters, found {}: {}", folder.string(), code.message()));
    }
    std::ranges::sort(paths);
    for (const fs::path& path : paths) {
      if (holds_something(path) && !fs::equivalent(path, target_.path, code)) judge(path);
    }
    return {};
  }

  DrafterSearch take() { return std::move(search_); }

 private:
  static bool holds_something(const fs::path& path) {
    std::error_code code;
    return fs::is_directory(path, code) ? fs::exists(path / "config.json", code)
                                        : path.extension() == ".gguf";
  }

  void judge(const fs::path& path) {
    const auto head = find_head(path);
    Method method = Method::kDraftTarget;
    std::string reason;
    if (!head.ok()) {
      reason = head.error().message;
    } else if (*head) {
      method = (*head)->method;
      const auto reasons = misfits(summarize_head(**head), target_.config, fingerprint_);
      reason = fmt::format("{}", fmt::join(reasons, "; "));
    } else {
      reason = why_no_draft_model(path);
      if (const auto found = draft_model_method(path); found.ok()) method = *found;
    }
    if (reason.empty()) {
      search_.found.push_back({path, method});
    } else {
      search_.left_out.push_back({path, std::move(reason)});
    }
  }

  std::string why_no_draft_model(const fs::path& path) {
    const auto file = open_model(path);
    if (!file.ok()) return file.error().message;
    const auto bytes = [](const ModelFile& model) {
      int64_t sum = 0;
      for (const auto& [name, tensor] : model.tensors) sum += tensor.bytes();
      return sum;
    };
    if (bytes(*file) >= bytes(target_)) return "no smaller than the target";
    const auto own = Tokenizer::create(target_.tokenizer);
    const auto drafts = Tokenizer::create(file->tokenizer);
    if (!own.ok()) return own.error().message;
    if (!drafts.ok()) return drafts.error().message;
    const Status same = check_same_vocabulary(**own, **drafts);
    return same.ok() ? "" : same.error().message;
  }

  const ModelFile& target_;
  std::string fingerprint_;
  DrafterSearch search_;
};

}  // namespace

fs::path folder_of(const fs::path& model) {
  std::error_code code;
  const fs::path canonical = fs::weakly_canonical(model, code);
  return (code ? model : canonical).parent_path();
}

Result<DrafterSearch> search_drafters(const std::vector<fs::path>& folders, const ModelFile& target) {
  Search search(target);
  for (const fs::path& folder : folders) OUTRIDER_RETURN_IF_ERROR(search.look_into(folder));
  return search.take();
}

std::optional<fs::path> find_head_beside(const fs::path& target, Method method) {
  const auto file = open_model(target);
  if (!file.ok()) return std::nullopt;
  const auto search = search_drafters({folder_of(target)}, *file);
  if (!search.ok()) return std::nullopt;
  const auto found = std::ranges::find(search->found, method, &FoundDrafter::method);
  return found == search->found.end() ? std::nullopt : std::optional(found->path);
}

}  // namespace outrider
