// SPDX-License-Identifier: Apache-2.0
#include "open/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "config/methods.h"
#include "draft_heads/vocabulary/output_rows.h"
#include "draft_heads/vocabulary/token_map.h"
#include "formats/random_model.h"
#include "open/drafters/drafter_places.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// Whether a speculative_model that is no head is used.
bool takes_draft_model(const SpeculativeOptions& options) {
  return options.method_unset || method_row(options.decoding_type).finds_files ||
         find_need(options, MethodNeeds::kDraftModel) != nullptr;
}

// `opened` are its files, where they have been opened before.
Status add_model(const fs::path& path, std::shared_ptr<const StoredFiles> opened, DraftFiles& files) {
  if (files.model(path) != nullptr) return {};
  OUTRIDER_TRY(ModelFile model, opened ? open_model(std::move(opened)) : open_model(path));
  files.models.push_back(std::move(model));
  return {};
}

// The drafter that was found, or none.
void take_found(OpenedFiles& files, FoundDrafter* found) {
  files.drafts = found == nullptr ? DraftFiles() : found->take_files();
  files.names.options.speculation.speculative_model = found == nullptr ? fs::path() : found->path;
}

// Finds and names the drafter of a method that needs one, and of Auto, which does without where there is
// none.
Status find_drafter(OpenedFiles& files) {
  SpeculativeOptions& options = files.names.options.speculation;
  if (const MethodRow* row = find_need(options, MethodNeeds::kHead)) {
    std::optional<FoundDrafter> found = find_trained_head(files.target, row->method);
    if (!found) {
      return usage_error(fmt::format(
          "{} needs a drafter trained for this target, found none beside it in {}, in the cache of "
          "pull or of another program, or with the program: add speculative_model=DIR to --speculative",
          method_key(row->method), folder_of(files.target.path).string()));
    }
    take_found(files, &*found);
  } else if (method_row(options.decoding_type).finds_files) {
    files.search = find_drafters(files.target);
    if (!files.search.found.empty()) take_found(files, &files.search.found.front());
  }
  return {};
}

Status take_vocabulary(const SpeculativeOptions& options, const ModelFile& target, DraftFiles& files) {
  if (!options.speculative_token_map.empty() && options.speculative_model.empty())
    return usage_error(
        "speculative_token_map: expected a speculative_model that drafts its tokens, found none");
  if (!files.head) return {};  // a draft model reads the map itself
  OUTRIDER_TRY(const std::vector<TokenId> map, read_token_map(options.speculative_token_map));
  return take_output_rows(*files.head, target, map);
}

// Auto with the target as its drafter means the module among the target's tensors, where there is one.
bool may_draft_from_inside(const EngineOptions& options) {
  std::error_code ignored;
  const SpeculativeOptions& speculation = options.speculation;
  return method_row(speculation.decoding_type).finds_files && !speculation.speculative_model.empty() &&
         fs::equivalent(speculation.speculative_model, options.model, ignored);
}

Result<DraftFiles> open_named_drafter(const EngineOptions& options, const ModelFile& target) {
  DraftFiles files;
  if (may_draft_from_inside(options)) {
    OUTRIDER_TRY(files.head, find_module(target));
  }
  if (files.head) return files;
  return open_draft_files(options.speculation);
}

}  // namespace

ChatFormat chat_format_of(const ModelFile& file) {
  ChatFormat format;
  format.bos_token = file.bos_token;
  format.eos_token = file.eos_token;
  format.other_tokens = file.tokenizer.template_tokens;
  if (file.chat_template_problem.empty()) {
    read_model_template(file.chat_template, file.chat_template_file, format);
  } else {
    set_template_problem(file.chat_template_problem, format);
  }
  return format;
}

Result<DraftFiles> open_draft_files(const SpeculativeOptions& options) {
  DraftFiles files;
  const fs::path& path = options.speculative_model;
  if (!path.empty() && find_need(options, MethodNeeds::kHead) != nullptr) {
    OUTRIDER_TRY(files.head, open_head(path));
  } else if (!path.empty()) {
    OUTRIDER_TRY(HeadOrFiles found, open_head_or_files(path));
    files.head = std::move(found.head);
    if (!files.head && takes_draft_model(options))
      OUTRIDER_RETURN_IF_ERROR(add_model(path, std::move(found.files), files));
  }
  if (find_need(options, MethodNeeds::kDraftModels) == nullptr) return files;
  for (const fs::path& model : options.speculative_models)
    OUTRIDER_RETURN_IF_ERROR(add_model(model, nullptr, files));
  return files;
}

Result<OpenedFiles> open_files(Names names) {
  OpenedFiles files{.names = std::move(names)};
  const SpeculativeOptions& speculation = files.names.options.speculation;
  OUTRIDER_TRY(files.target, open_model(files.names.options.model));
  OUTRIDER_TRY(files.drafts, open_named_drafter(files.names.options, files.target));
  if (files.names.finds_drafter && speculation.speculative_model.empty())
    OUTRIDER_RETURN_IF_ERROR(find_drafter(files));
  for (;;) {
    const Status taken = take_vocabulary(speculation, files.target, files.drafts);
    if (taken.ok()) return files;
    if (!take_next_drafter(files, taken.error().message)) return taken.error();
  }
}

bool take_next_drafter(OpenedFiles& files, std::string reason) {
  DrafterSearch& search = files.search;
  if (search.found.empty()) return false;
  const FoundDrafter& failed = search.found.front();
  search.tried.push_back({failed.path, std::move(reason), failed.name, failed.place});
  search.found.erase(search.found.begin());
  take_found(files, search.found.empty() ? nullptr : &search.found.front());
  return true;
}

}  // namespace outrider
