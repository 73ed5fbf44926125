// SPDX-License-Identifier: Apache-2.0
#include "drafters/draft_files.h"

#include <algorithm>
#include <string>

#include "config/methods.h"
#include "formats/json_object.h"

namespace outrider {

const ModelFile* DraftFiles::model(const std::filesystem::path& path) const {
  const auto found = std::ranges::find(models, path, &ModelFile::path);
  return found == models.end() ? nullptr : &*found;
}

Method draft_model_method(const ModelFile* model) {
  return recognise_draft_model([&](std::string_view key) {
    return model != nullptr && model->document && model->document->root().contains(key);
  });
}

Method method_of(const DraftFiles& files, const SpeculativeOptions& options) {
  if (files.head) return files.head->method;
  return draft_model_method(files.model(options.speculative_model));
}

Status take_method(const DraftFiles& files, SpeculativeOptions& options) {
  const Method method = method_of(files, options);
  if (options.method_unset || stands_for(options.decoding_type, method)) options.decoding_type = method;
  options.method_unset = false;
  if (!files.head) return {};
  if (method_row(options.decoding_type).needs == MethodNeeds::kDraftModel) {
    return files.head->fail("holds a drafter of the kind " + std::string(method_name(method)) +
                            ", found decoding_type " + std::string(method_name(options.decoding_type)) +
                            "; leave decoding_type out");
  }
  if (options.decoding_type != method) return {};
  return take_ranking_temperature(files.head->config.root(), options);
}

Status take_ranking_temperature(const JsonObject& config, SpeculativeOptions& options) {
  if (options.ranking_temperature > 0.0) return {};
  OUTRIDER_TRY(const auto named, config.number("outrider_ranking_temperature"));
  if (named && *named > 0.0) options.ranking_temperature = *named;
  return {};
}

}  // namespace outrider
