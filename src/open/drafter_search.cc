// SPDX-License-Identifier: Apache-2.0
#include "open/drafter_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "draft_heads/head_fit.h"
#include "drafters/draft_files.h"
#include "drafters/draft_target/vocabulary_match.h"

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
    Method method = {};
    std::string reason;
    if (!head.ok()) {
      reason = head.error().message;
    } else if (*head) {
      method = (*head)->method;
      const auto reasons = misfits(summarize_head(**head), target_.config, fingerprint_);
      reason = fmt::format("{}", fmt::join(reasons, "; "));
    } else {
      const auto model = open_model(path);
      reason = model.ok() ? why_no_draft(*model) : model.error().message;
      if (model.ok()) method = draft_model_method(&*model);
    }
    if (reason.empty()) {
      search_.found.push_back({path, method});
    } else {
      search_.left_out.push_back({path, std::move(reason)});
    }
  }

  // Empty: it may draft.
  std::string why_no_draft(const ModelFile& file) {
    const auto bytes = [](const ModelFile& model) {
      int64_t sum = 0;
      for (const auto& [name, tensor] : model.tensors) sum += tensor.bytes();
      return sum;
    };
    if (bytes(file) >= bytes(target_)) return "no smaller than the target";
    const auto own = Tokenizer::create(target_.tokenizer);
    const auto drafts = Tokenizer::create(file.tokenizer);
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

Result<DrafterSearch> search_drafters(const std::vector<fs::path>& folders, const ModelFile& target) {
  Search search(target);
  for (const fs::path& folder : folders) OUTRIDER_RETURN_IF_ERROR(search.look_into(folder));
  return search.take();
}

}  // namespace outrider
