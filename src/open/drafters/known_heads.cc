// SPDX-License-Identifier: Apache-2.0
#include "open/drafters/known_heads.h"

#include <algorithm>

#include "open/drafters/known_head_rows.h"
#include "open/drafters/normal_name.h"

namespace outrider {

std::vector<KnownHead> known_heads_for(std::string_view normal_target) {
  std::vector<KnownHead> heads;
  for (const KnownHead& head : kKnownHeadRows) {
    if (is_same_name(normal_name(head.target), normal_target)) heads.push_back(head);
  }
  return heads;
}

std::string_view known_target_of(std::string_view repository) {
  const auto* const found =
      std::ranges::find(kKnownHeadRows, repository.substr(0, repository.find(':')), &KnownHead::repository);
  return found == kKnownHeadRows.end() ? std::string_view() : found->target;
}

}  // namespace outrider
