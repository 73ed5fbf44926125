// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "draft_heads/head_file.h"
#include "formats/model_file.h"
#include "outrider/result.h"

namespace outrider {

// A model or a drafter, as the names and headers of its files describe it. Names are normal (normal_name.h).
struct ModelIdentity {
  std::vector<std::string> names;     // of the model itself
  std::vector<std::string> made_for;  // the models that it drafts for, where it says so
  std::string stated_name;            // as a GGUF file calls the model that it holds, or a part of
  int64_t vocab_size = 0;             // tokens; 0: unknown
  int64_t modules = 0;                // that predict further tokens, as the headers say
  bool writes_text = true;            // false: it makes vectors or scores
};

// `repository`: "ORG/REPO", where the place of the files says it, or empty.
ModelIdentity identity_of(const ModelFile& model, std::string_view repository);
ModelIdentity identity_of(const HeadFile& head, std::string_view repository);

// The identity of a model by the keys of its GGUF files or by its config.json. Error: neither is there.
Result<ModelIdentity> read_identity(const std::filesystem::path& path, const StoredFiles* files,
                                    std::string_view repository);

// "ORG/REPO" of a path in the Hub's cache (models--ORG--REPO/snapshots/COMMIT), else empty.
std::string repository_of(const std::filesystem::path& path);

// Whether the drafter says that it was made for the target, by name.
bool is_made_for(const ModelIdentity& drafter, const ModelIdentity& target);

}  // namespace outrider
