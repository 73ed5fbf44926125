// SPDX-License-Identifier: Apache-2.0
// The Hub's answer about a repository. All of it is untrusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hub/transfer/checksum.h"
#include "outrider/result.h"

namespace outrider {

struct HubFile {
  std::string path;  // within the repository: relative, below it, of printable characters
  int64_t bytes = 0;
  Checksum checksum;
};

struct HubRepository {
  std::string commit;  // 40 hexadecimal digits: all files belong to this commit
  std::vector<HubFile> files;

  const HubFile* find(std::string_view path) const;
};

// Reads the answer to GET /api/models/ORG/REPO?blobs=true. Files without a checksum are left out, and files
// with paths that are hidden, would leave the folder or have unusual characters. Errors: no JSON, no commit,
// a size below 0.
Result<HubRepository> parse_hub_repository(std::string_view json);

// The names of the files that a model.safetensors.index.json or pytorch_model.bin.index.json lists, each
// once.
Result<std::vector<std::string>> parse_weight_index(std::string_view json);

}  // namespace outrider
