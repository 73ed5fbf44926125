// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "draft_heads/head_file.h"
#include "formats/model_file.h"
#include "outrider/result.h"
#include "outrider/speculative_options.h"

namespace outrider {

// The opened files that a method drafts with, beside the target.
struct DraftFiles {
  std::optional<HeadFile> head;   // speculative_model, where it is a head
  std::vector<ModelFile> models;  // speculative_model, where it is a model, and speculative_models

  const HeadFile* head_file() const { return head ? &*head : nullptr; }
  // The draft model at a path; null: it was not opened.
  const ModelFile* model(const std::filesystem::path& path) const;
};

// The method that drafts with this model; null: one that was not opened.
Method draft_model_method(const ModelFile* model);

// The method that the files of speculative_model are for.
Method method_of(const DraftFiles& files, const SpeculativeOptions& options);

// Sets the method, where it was left to the files or they have one that it stands for, and what the files of
// its head say about ranking. Error: a head with a method that is named as a draft model's.
Status take_method(const DraftFiles& files, SpeculativeOptions& options);

// Sets ranking_temperature to the one that a drafter's config.json names, unless one was given.
Status take_ranking_temperature(const JsonObject& config, SpeculativeOptions& options);

}  // namespace outrider
