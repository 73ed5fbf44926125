// SPDX-License-Identifier: Apache-2.0
#include "open/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "config/methods.h"
#include "draft_heads/vocabulary/output_rows.h"
#include "draft_heads/vocabulary/token_map.h"
#include "formats/random_model.h"
#include "open/own_drafter.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// Whether a speculative_model that is no head is used.
bool takes_draft_model(const SpeculativeOptions& options) {
  return options.method_unset || method_row(options.decoding_type).finds_files ||
         find_need(options, MethodNeeds::kDraftModel) != nullptr;
}

Status add_model(const fs::path& path, DraftFiles& files) {
  if (files.model(path) != nullptr) return {};
  OUTRIDER_TRY(ModelFile model, open_model(path));
  files.models.push_back(std::move(model));
  return {};
}

// Finds and names the drafter of a method that needs one, and of Auto, which does without where there is
// none.
Status find_drafter(OpenedFiles& files) {
  SpeculativeOptions& options = files.names.options.speculation;
  if (const MethodRow* row = find_need(options, MethodNeeds::kHead)) {
    files.drafts.head = find_trained_head(files.target, row->method);
    if (!files.drafts.head) {
      return usage_error(fmt::format(
          "{} needs a drafter trained for this target, found none beside it in {}, in the cache of "
          "pull or with the program: add speculative_model=DIR to --speculative",
          method_key(row->method), folder_of(files.target.path).string()));
    }
  } else if (method_row(options.decoding_type).finds_files && !is_shape_path(files.target.path)) {
    files.drafts = find_own_drafter(files.target);
    if (!files.drafts.models.empty()) options.speculative_model = files.drafts.models.front().path;
  }
  if (files.drafts.head) options.speculative_model = files.drafts.head->file.path;
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
  if (!path.empty() && method_row(options.decoding_type).needs == MethodNeeds::kHead) {
    OUTRIDER_TRY(files.head, open_head(path));
  } else if (!path.empty()) {
    OUTRIDER_TRY(files.head, find_head(path));
    if (!files.head && takes_draft_model(options)) OUTRIDER_RETURN_IF_ERROR(add_model(path, files));
  }
  if (find_need(options, MethodNeeds::kDraftModels) == nullptr) return files;
  for (const fs::path& model : options.speculative_models) OUTRIDER_RETURN_IF_ERROR(add_model(model, files));
  return files;
}

Result<OpenedFiles> open_files(Names names) {
  OpenedFiles files{.names = std::move(names)};
  const SpeculativeOptions& speculation = files.names.options.speculation;
  OUTRIDER_TRY(files.target, open_model(files.names.options.model));
  OUTRIDER_TRY(files.drafts, open_draft_files(speculation));
  if (files.names.finds_drafter && speculation.speculative_model.empty())
    OUTRIDER_RETURN_IF_ERROR(find_drafter(files));
  OUTRIDER_RETURN_IF_ERROR(take_vocabulary(speculation, files.target, files.drafts));
  return files;
}

}  // namespace outrider
