// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/methods.h"

namespace outrider {

// The methods of the table that need no files, or the files that come with the program, by their names on the
// command line; without methods that are made of others.
inline std::vector<std::string> built_in_methods() {
  std::vector<std::string> names;
  for (const MethodRow& row : method_table()) {
    const std::string name = method_key(row.method);
    const bool needs_own_files = row.needs == MethodNeeds::kHead || row.method == Method::kPard;
    const bool has_files = std::filesystem::exists(OUTRIDER_SOURCE_DIR "/models/outrider-" + name);
    const bool needs_more = row.needs == MethodNeeds::kMethods || row.needs == MethodNeeds::kUserDrafter;
    if (!needs_more && (has_files || !needs_own_files)) names.push_back(name);
  }
  return names;
}

}  // namespace outrider
