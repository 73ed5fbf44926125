// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/model_file.h"
#include "outrider/result.h"
#include "outrider/speculative_options.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// A draft model or learned drafter that fits a target.
struct FoundDrafter {
  std::filesystem::path path;
  Method method = Method::kDraftTarget;  // the method that drafts with it
};

// A model or a learned drafter that does not fit the target.
struct LeftOutDrafter {
  std::filesystem::path path;
  std::string reason;
};

struct DrafterSearch {
  std::vector<FoundDrafter> found;  // by path
  std::vector<LeftOutDrafter> left_out;
};

// The folder that a model lies in, where its drafters are looked for.
std::filesystem::path folder_of(const std::filesystem::path& model);

// Every model and every learned drafter in these folders, the target itself aside. Error: no such folder.
Result<DrafterSearch> search_drafters(const std::vector<std::filesystem::path>& folders,
                                      const ModelFile& target);

// The first learned drafter for that method beside the target that fits it.
std::optional<std::filesystem::path> find_head_beside(const std::filesystem::path& target, Method method);

}  // namespace outrider
