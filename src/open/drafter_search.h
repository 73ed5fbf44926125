// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
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
  Method method = {};  // the method that drafts with it
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

// Every model and every learned drafter in these folders, the target itself aside. Error: no such folder.
Result<DrafterSearch> search_drafters(const std::vector<std::filesystem::path>& folders,
                                      const ModelFile& target);

}  // namespace outrider
