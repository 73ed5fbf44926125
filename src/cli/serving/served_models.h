// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/environment.h"
#include "outrider/result.h"

namespace outrider {

// A model of `serve --models`.
struct ServedEntry {
  std::string name;
  std::filesystem::path path;
  int64_t weight_bytes = 0;
  std::vector<std::string> aliases = {};
  bool is_pinned = false;
  std::map<std::string, std::string> options = {};  // of `serve`, for this model alone
};

// The models that `where` means: "all" for every model in `folders`, a folder with folders and .gguf files,
// or a YAML file: a list "models" of entries {model, name, aliases, pinned, options}. Drafters and models
// that cannot be read are left out of all but the list. Errors: no models; a file that is no such list; a
// model of the list that is not on this machine; a name that occurs twice.
Result<std::vector<ServedEntry>> find_served_models(std::string_view where, const ModelFolders& folders);

}  // namespace outrider
