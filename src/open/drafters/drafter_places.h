// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/model_file.h"
#include "outrider/result.h"

namespace outrider {

// A file or directory that may be a drafter, and where it lies.
struct DrafterCandidate {
  std::filesystem::path path;
  std::string name;          // "ORG/REPO:QUANT", or the last part of the path
  std::string place;         // "beside the target", or the program that keeps it: "huggingface"
  bool is_beside = false;    // what lies there may belong to the target without naming it
  bool may_be_model = true;  // false: only heads count there
  int64_t bytes = 0;         // of its weights
};

// All candidates, in the order of the places: beside the target and in folders there that a
// drafting method gave its name, such as MTP/, in every local cache, and with the program. The target itself,
// further shards and folders without a configuration are none.
std::vector<DrafterCandidate> drafter_candidates(const ModelFile& target);

// The candidates in folders that somebody named. Error: no such folder.
Result<std::vector<DrafterCandidate>> candidates_in(const std::vector<std::filesystem::path>& folders,
                                                    const ModelFile& target);

// The folder that a model lies in.
std::filesystem::path folder_of(const std::filesystem::path& model);

// Bytes of the weights in a file or a directory; 0: there are none.
int64_t weight_bytes(const std::filesystem::path& path);

}  // namespace outrider
