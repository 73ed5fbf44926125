// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "draft_heads/head_file.h"
#include "formats/json_file.h"
#include "formats/model_file.h"
#include "outrider/result.h"
#include "outrider/speculative_options.h"

namespace outrider {

struct ResolvedSpeculation {
  SpeculativeOptions options;
  std::optional<HeadFile> head;  // the opened files of speculative_model, where they are a head's
};

// Opens the files that the options name, if they may be a head's, and fills in everything that files decide:
// the method, where it was left to them; the methods that Auto stands for, which are Suffix, NGram and the
// one of speculative_model in one tree; the method's usual tree, where no key asked for one; the nodes of a
// tree of choices, where none were listed. Each of several methods that share a tree is resolved for itself.
// Errors: a head that cannot be read, or is named as DraftTarget; choices that make no tree.
Result<ResolvedSpeculation> resolve(SpeculativeOptions options);

// Gives the head, if there is one, the rows of the target's output head that speculative_token_map or its own
// files name, see take_output_rows(). Errors: those of the map; a map without speculative_model.
Status take_vocabulary(std::optional<HeadFile>& head, const ModelFile& target,
                       const SpeculativeOptions& options);

// The key of config.json that names the token at places to be drafted; models trained for PARD have it.
inline constexpr std::string_view kPardToken = "pard_token";

// The config.json of a draft model; nullopt: it has none, as a GGUF file.
Result<std::optional<JsonFile>> read_draft_config(const std::filesystem::path& model);

// The method that drafts with this model, which is no head: DraftTarget or PARD.
Result<Method> draft_model_method(const std::filesystem::path& model);

// Sets ranking_temperature to the one that a drafter's config.json names, unless one was given.
Status take_ranking_temperature(const JsonObject& config, SpeculativeOptions& options);

}  // namespace outrider
